"""A small shop for Scrapy projects, with every kind of page that a spider meets.

| path | what it is |
|---|---|
| `/` | a list of links to the pages that the test names |
| `/list/N` | a list of links to the items `N0` to `N9` |
| `/item/N` | an item's page |
| `/moved/N` | redirects to `/item/N` |
| `/busy/N` | 503 with Retry-After, the first time; then an item's page |
| `/down/N` | 503, always |
| `/gone/N` | 404 |
| `/broken/N` | an item's page without a price, until the test mends it |
| `/login` | a form; the right password gives a session cookie |
| `/members/N` | an item's page with the cookie, else a redirect to the form |
| `/secret/N` | an item's page with the cookie, else 403 |
"""

from __future__ import annotations

import re
import secrets
import time
from collections import Counter
from collections.abc import Sequence
from math import inf

from aiohttp import web

from support.sites import Hit, Site, html
from support.until import until

USER, PASSWORD = "alice", "correct horse"
RETRY_AFTER_S = 1
SESSION = "session"

_NUMBERED = re.compile(r"/([a-z]+)/(\d+)")
_FORM = """
<form action="/login" method="post">
<input type="hidden" name="token" value="{token}">
<input type="text" name="user"><input type="password" name="password">
</form>
"""


class TroubleSite(Site):
    """The site. The test sets the links of its front page, and what is wrong with it."""

    def __init__(self, links: Sequence[str]) -> None:
        super().__init__(_by_path)
        self.links = list(links)
        self.held: set[str] = set()
        """Paths that get no answer while they are in this set."""
        self.allowed: float = inf
        """How many requests are answered; the others wait until this is raised."""
        self.is_mended = False
        """Whether the broken pages now have a price."""
        self.logins = 0
        """The number of successful logins."""
        self._sessions: set[str] = set()
        self._token = secrets.token_hex(8)

    def fetches(self) -> Counter[str]:
        """How often each path was requested, without its query."""
        return Counter(path.partition("?")[0] for path in self.paths)

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/robots.txt":
            return html("no such page", 404)
        self.hits.append(Hit(time.monotonic(), request.raw_path))
        number = len(self.hits)
        await until(
            f"{request.path} to be let go",
            lambda: request.path not in self.held and number <= self.allowed,
        )
        if request.path == "/":
            return html(_links(self.links))
        if request.path == "/login":
            return await self._login(request)
        found = _NUMBERED.fullmatch(request.path)
        return self._numbered(request, found[1], int(found[2])) if found else _missing()

    def _numbered(self, request: web.BaseRequest, kind: str, number: int) -> web.Response:
        match kind:
            case "item":
                return _item(number)
            case "list":
                return html(_links([f"/item/{number}{digit}" for digit in range(10)]))
            case "moved":
                return _redirect(f"/item/{number}")
            case "busy" if self.fetches()[request.path] == 1:
                return _busy({"Retry-After": str(RETRY_AFTER_S)})
            case "busy":
                return _item(number)
            case "down":
                return _busy({})
            case "broken":
                return _item(number, "9.50" if self.is_mended else "on request")
            case "members" | "secret":
                return self._for_members(request, kind, number)
            case _:
                return _missing()

    def _for_members(self, request: web.BaseRequest, kind: str, number: int) -> web.Response:
        if request.cookies.get(SESSION) in self._sessions:
            return _item(number)
        return _redirect("/login") if kind == "members" else html("members only", 403)

    async def _login(self, request: web.BaseRequest) -> web.Response:
        if request.method != "POST":
            return html(_FORM.format(token=self._token))
        sent = await request.post()
        if (sent["user"], sent["password"], sent["token"]) != (USER, PASSWORD, self._token):
            return html("wrong password", 403)
        self.logins += 1
        session = secrets.token_hex(8)
        self._sessions.add(session)
        welcome = html(_links(self.links))
        welcome.set_cookie(SESSION, session)
        return welcome


async def _by_path(path: str) -> web.Response:
    raise AssertionError("a path alone is not enough to answer here")


def _links(paths: Sequence[str]) -> str:
    """A page of links. Each link's class is the kind of its page."""
    return "\n".join(f'<a class="{path.split("/")[1]}" href="{path}"></a>' for path in paths)


def _item(number: int, price: str = "") -> web.Response:
    price = price or f"{number}.50"
    return html(f'<h1 class="sku">S{number}</h1><p class="price">{price}</p>')


def _redirect(path: str) -> web.Response:
    return web.Response(status=302, headers={"Location": path})


def _busy(headers: dict[str, str]) -> web.Response:
    return web.Response(status=503, text="come back later", headers=headers)


def _missing() -> web.Response:
    return html("no such page", 404)
