"""A site that gives out sessions in cookies, and notes the cookies of every request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from aiohttp import web

from support.sites import Site, html

CANARY = "canary4711"
"""The start of every session's value."""


class Asked(NamedTuple):
    """A request that the site received."""

    host: str
    path: str
    cookie: str
    """The Cookie header."""


class LoginSite(Site):
    """A site whose logins work by cookies alone.

    `/account` needs a session; `/login` gives one and redirects back. `/NAME/0` begins a session
    named NAME, which the other steps `/NAME/1` and so on need.
    """

    addresses = ("127.0.0.1", "127.0.0.2")

    def __init__(self) -> None:
        super().__init__(self._gone)
        self.asked: list[Asked] = []
        self.faults: list[str] = []
        self.sessions = 0

    @property
    def other_url(self) -> str:
        """The URL of the same server as another site."""
        return f"http://127.0.0.2:{self.port}/"

    def cookies_of(self, path: str) -> list[str]:
        """The Cookie headers of all requests for a path, in order."""
        return [asked.cookie for asked in self.asked if asked.path == path]

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        cookie = request.headers.get("Cookie", "")
        self.asked.append(Asked(request.host.partition(":")[0], request.path, cookie))
        await super()._respond(request)
        parts = request.path.strip("/").split("/")
        match parts:
            case ["account"]:
                return html("welcome") if CANARY in cookie else _to("/login")
            case ["login"]:
                return self._with_session("account", _to("/account"))
            case ["maze"]:  # An endless redirect, with another cookie each time.
                return self._with_session("maze", _to("/maze"))
            case ["loop"]:
                return _with(_to("/loop"), ["same=1"])
            case ["away"]:
                return self._with_session("away", _to(f"{self.other_url}landing"))
            case ["landing"]:
                return _with(html("landed"), [f"other={CANARY}-other"])
            case [name, step]:
                return await self._step(name, step, cookie, is_back="in" in request.query)
        return await self._gone(request.path)

    async def _step(self, name: str, step: str, cookie: str, *, is_back: bool) -> web.Response:
        mine = f"sid={CANARY}-{name}-"
        if step == "0" and not is_back:
            return self._with_session(name, _to(f"/{name}/0?in"))
        if mine not in cookie or cookie.count("sid=") != 1:
            self.faults.append(f"/{name}/{step} with {cookie!r}")
            return html("who are you?", 401)
        return _with(html("welcome"), [f"step={step}; Path=/"])

    def _with_session(self, name: str, response: web.Response) -> web.Response:
        self.sessions += 1
        lines = ["lang=de; Path=/", f"sid={CANARY}-{name}-{self.sessions}; Path=/; HttpOnly"]
        return _with(response, [*lines, "theme=dark; Path=/elsewhere"])

    async def _gone(self, path: str) -> web.Response:
        return html("gone", 404)


def _to(url: str) -> web.Response:
    return web.Response(status=302, headers={"Location": url})


def _with(response: web.Response, lines: list[str]) -> web.Response:
    for line in lines:
        response.headers.add("Set-Cookie", line)
    return response


SPIDER = """
from shoal import Spider

class Login(Spider):
    start_urls = {urls!r}
    cookies = {cookies!r}
    allow_private = True
    robots = False
    rate = "none"
    lease_s = 3600
    max_losses = 99

    def parse(self, page):
        yield {{"url": page.url, "text": page.text}}

class Chains(Login):
    def start(self):
        for chain in {chains!r}:
            yield self.step(chain, 0)

    def step(self, chain, number):
        from shoal.core.task import Task
        url = "{site}%s/%d" % (chain, number)
        return Task(url=url, job_type="next", chain=chain, meta=dict(step=number))

    def next(self, page):
        yield {{"url": page.url, "text": page.text}}
        if page.meta["step"] < {last}:
            yield self.step(page.task.chain, page.meta["step"] + 1)
"""


def spider(
    site: LoginSite,
    *paths: str,
    cookies: str = "visit",
    chains: Sequence[str] = (),
    last: int = 5,
) -> str:
    """The source of a spider for some paths, and of one for chains of steps."""
    urls = [site.url + path for path in paths]
    return SPIDER.format(urls=urls, cookies=cookies, chains=list(chains), site=site.url, last=last)
