"""A shop behind a login, with a `Doorman` that checks its clients closely.

with serving(SessionSite({"alice": "secret"}, products=30)) as site: ...
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from enum import StrEnum

from aiohttp import web

from support.doorman import CANARY, Doorman, Visit
from support.sites import Site, html

LOGIN = """<title>Log in</title><p class=error>{words}</p><form id=login method=post action=/login>
<input type=hidden name=csrf value={token}><input name=user><input type=password name=password>
<button>Log in</button></form>"""
REVIEW = """<form id=review method=post action=/review><input name=text>
<input type=hidden name=number value={number}><button>Send</button></form>"""
STRANGERS = "<h1>Please log in</h1><a href=/login>Log in</a>"


class Stranger(StrEnum):
    """What clients that are not logged in get instead of a page."""

    REDIRECT = "redirect"
    UNAUTHORISED = "401"
    OTHER_PAGE = "page"


class SessionSite(Site):
    """The shop. With a login, `/catalog` links to `/product/N`. `/login` has a form, `/api/login`
    takes JSON, and `/open/N` needs no login. 127.0.0.2 is another site on the same server."""

    addresses = ("127.0.0.1", "127.0.0.2")

    def __init__(
        self,
        accounts: Mapping[str, str],
        products: int = 12,
        *,
        takes_s: float = 0.0,
        at_once: int = 1,
        ends_after: int = 0,
        stranger: Stranger = Stranger.REDIRECT,
    ) -> None:
        super().__init__(self._gone)
        self.door = Doorman(accounts, at_once, ends_after)
        self.numbers = range(1, products + 1)
        self.takes_s = takes_s
        self.stranger = stranger

    @property
    def other_url(self) -> str:
        """The URL of the same server as another site."""
        return f"http://127.0.0.2:{self.port}/"

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        await super()._respond(request)
        given = await _given(request)
        visit = self.door.visit_of(request)
        account = given.get("user", "") or (visit.account if visit else "")
        self.door.note(request, account)
        with self.door.under_way(account, request):
            await asyncio.sleep(self.takes_s)
            return await self._page(request, given, visit)

    async def _page(
        self, request: web.BaseRequest, given: dict[str, str], visit: Visit | None
    ) -> web.Response:
        match request.method, _parts(request):
            case "GET", ["login"]:
                return self._login_page()
            case "POST", ["login"]:
                return await self._by_form(request, given)
            case "POST", ["api", "login"]:
                return await self._by_json(request, given)
            case _, ["landing" | "open", *_]:
                return _with(html('Everybody <a class="logout">may</a> come.'), "open=1")
            case _, ["robots.txt"]:
                return web.Response(text="")
        if visit is None or not self.door.is_welcome(request, visit):
            return self._to_strangers(request)
        page = self._behind(request, given, visit)
        return _with(page, f"stamp={visit.stamp}") if self.door.is_stamping else page

    def _login_page(self, words: str = "") -> web.Response:
        token = str(len(self.door.log))
        return _with(html(LOGIN.format(words=words, token=token)), f"pre={CANARY}-{token}")

    async def _by_form(self, request: web.BaseRequest, given: dict[str, str]) -> web.Response:
        user = given.get("user", "")
        if request.cookies.get("pre") != f"{CANARY}-{given.get('csrf')}":
            self.door.faults.append(f"login of {user} without the token")
            return self._login_page("Try again.")
        visit = await self.door.let_in(request, user, given.get("password", ""))
        if visit is None:
            return self._login_page("Wrong password.")
        return _with(_to("/home"), f"sid={visit.id}; HttpOnly", "pre=; Max-Age=0")

    async def _by_json(self, request: web.BaseRequest, given: dict[str, str]) -> web.Response:
        visit = await self.door.let_in(request, given.get("user", ""), given.get("password", ""))
        if visit is None:
            return web.json_response({"error": "wrong password"}, status=403)
        return _with(web.json_response({"hello": visit.account}), f"sid={visit.id}")

    def _to_strangers(self, request: web.BaseRequest) -> web.Response:
        if self.stranger is Stranger.REDIRECT:
            return _to(f"/login?next={request.path}")
        return html(STRANGERS, 401 if self.stranger is Stranger.UNAUTHORISED else 200)

    def _behind(
        self, request: web.BaseRequest, given: dict[str, str], visit: Visit
    ) -> web.Response:
        """The pages that need a login."""
        head = f"<b class=account>{visit.account}</b><a class=logout href=/logout>Log out</a>"
        match _parts(request):
            case ["home"]:
                return html(f"{head}<a href=/catalog>Catalogue</a>")
            case ["catalog"]:
                links = (f"<a class=product href=/product/{n}>{n}</a>" for n in self.numbers)
                return html(head + "".join(links))
            case ["product", number]:
                return html(f"{head}<h1>Product {number}</h1>{REVIEW.format(number=number)}")
            case ["review"]:
                return html(f"{head}<h1>Product {given['number']}</h1><q>{given['text']}</q>")
            case ["adult", number]:  # Needs a cookie that only its own redirect sets.
                age = f"{CANARY}-{visit.account}"
                if request.cookies.get("age") == age:
                    return html(f"{head}<h1>Product {number}</h1>")
                return _with(_to(request.path), f"age={age}")
            case ["away"]:
                return _with(_to(f"{self.other_url}landing"), f"away={CANARY}-away")
            case ["trap"]:  # Logs the client out.
                self.door.end(visit.account)
                return self._to_strangers(request)
        return html(f"{head}no such page", 404)

    async def _gone(self, path: str) -> web.Response:
        return html("gone", 404)


async def _given(request: web.BaseRequest) -> dict[str, str]:
    """The fields sent in a request, as a form or as JSON."""
    if request.content_type == "application/json":
        return {str(name): str(value) for name, value in (await request.json()).items()}
    return {name: str(value) for name, value in (await request.post()).items()}


def _parts(request: web.BaseRequest) -> list[str]:
    return request.path.strip("/").split("/")


def _to(url: str) -> web.Response:
    return web.Response(status=302, headers={"Location": url})


def _with(response: web.Response, *cookies: str) -> web.Response:
    for cookie in cookies:
        response.headers.add("Set-Cookie", f"{cookie}; Path=/")
    return response
