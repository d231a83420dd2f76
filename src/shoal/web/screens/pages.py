"""Makes the pages of screens, the JSON by which they refresh, error pages and static files."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import msgspec
from aiohttp import web

from shoal.alerts.notes import alerts_now
from shoal.core import plaintext
from shoal.errors import StorageError
from shoal.web.context import Context
from shoal.web.etags import with_etag
from shoal.web.problems import Problem
from shoal.web.routes import Route
from shoal.web.screens.live import Live
from shoal.web.screens.rendering import rendered, static_file

STATIC = {"app.css": "text/css", "app.js": "text/javascript", "icon.svg": "image/svg+xml"}
PASSING = {503: "The stores do not answer", 504: "It took too long"}
"""Titles of problems that may pass by themselves, by status."""


class ScreenContent(msgspec.Struct, kw_only=True):
    """What a screen shows: `live` refreshes, `more` is only rendered with the page."""

    title: str
    live: Live = msgspec.field(default_factory=Live)
    more: dict[str, Any] = {}


Look = Callable[[Context, web.Request], Awaitable[ScreenContent]]


async def page(
    context: Context, request: web.Request, template: str, status: int = 200, **values: Any
) -> web.Response:
    """A page from a template. Its head shows how many alerts fire."""
    live = await _with_head(context, values.pop("live", Live()))
    return rendered(context, request, template, status, live=live, **values)


async def _with_head(context: Context, live: Live) -> Live:
    """The same with the number of firing alerts, which the head of every page shows, and with all
    texts made harmless."""

    async def count() -> int:
        return sum(alert.state == "firing" for alert in await alerts_now(context.frontier.notes))

    try:
        firing = await context.sampler.ask("firing", count)
    except StorageError:  # The rest of the page may still work.
        firing = 0
    texts = live.text | {"firing": f"{firing:,}" if firing else ""}
    harmless = {name: plaintext.lines(text) for name, text in texts.items()}
    return msgspec.structs.replace(live, text=harmless)


def screen(path: str, template: str, look: Look, current: str) -> tuple[Route, Route]:
    """The routes of a screen: the page, and the JSON by which it refreshes."""

    async def show(context: Context, request: web.Request) -> web.Response:
        shown = await look(context, request)
        own_path = request.rel_url.raw_path_qs.removeprefix(context.prefix)
        values: dict[str, Any] = {"title": shown.title, "live": shown.live, **shown.more}
        live_url = f"{context.url('live')}{own_path}"
        return await page(context, request, template, live_url=live_url, current=current, **values)

    async def ask_again(context: Context, request: web.Request) -> web.Response:
        async def encoded() -> bytes:
            shown = await look(context, request)
            return msgspec.json.encode(await _with_head(context, shown.live))

        return with_etag(request, await context.sampler.ask(request.path_qs, encoded))

    return (
        Route(method="GET", path=path, answer=show),
        Route(method="GET", path=f"/live{path}", answer=ask_again),
    )


def log_in_page(
    context: Context, request: web.Request, status: int = 200, wrong: str = "", then: str = ""
) -> web.Response:
    """The form for a token, which leads to the page `then`. It queries no store, because the client
    is not logged in."""
    return rendered(context, request, "login.html", status, title="Log in", wrong=wrong, then=then)


def _own_referrer(request: web.Request) -> str:
    """The path of the page on which a button was pressed. Empty if it is not on this server."""
    came_from = urlsplit(request.headers.get("Referer", ""))
    is_own = came_from.netloc == request.host and came_from.path.startswith("/")
    if not is_own or came_from.path.startswith("//"):
        return ""
    return f"{came_from.path}{'?' if came_from.query else ''}{came_from.query}"


class Pages:
    """Pages and files that belong to no screen."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def problem(self, request: web.Request, problem: Problem) -> web.Response:
        """The page that shows a problem. If a token is needed, it is the login form."""
        context = self._context
        if problem.status == 401:
            then = request.rel_url.raw_path_qs if request.method == "GET" else ""
            return log_in_page(context, request, 401, then=then)
        passes = problem.status in PASSING
        is_asked_again = passes and request.method in ("GET", "HEAD")
        made = rendered(
            context, request, "problem.html", problem.status,
            title=PASSING.get(problem.status, problem.details.title),
            problem=problem.details,
            passes=passes,
            is_asked_again=is_asked_again,
            back="" if is_asked_again else _own_referrer(request),
        )  # fmt: skip
        made.headers.update(problem.headers)
        return made

    def add_static(self, app: web.Application) -> None:
        """Add the routes of static files. Their addresses contain a digest, so browsers may cache
        them forever. They need no token, because the login form uses them."""

        async def send(request: web.Request) -> web.Response:
            name = request.match_info["name"]
            if name not in STATIC:
                raise web.HTTPNotFound
            return web.Response(
                body=static_file(name),
                content_type=STATIC[name],
                charset="utf-8",
                headers={"Cache-Control": "public, max-age=31536000, immutable"},
            )

        app.router.add_get(f"{self._context.prefix}/static/{{name}}", send)
