"""Declares routes. The server and the description of the API are both made from these tables."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import msgspec
from aiohttp import web

from shoal.errors import ConfigError
from shoal.web.access import Role
from shoal.web.context import Context
from shoal.web.problems import Problem

MAX_BODY_BYTES = 1024 * 1024
ROUTE = "_shoal_route"

T = TypeVar("T")

Answering = Callable[[Context, web.Request], Awaitable[web.StreamResponse]]


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """A method and path, the handler that answers it, and what it takes and returns."""

    method: str
    path: str
    answer: Answering
    summary: str = ""
    query: Any = None
    """The type of the query parameters."""
    body: Any = None
    """The type of the body, as JSON."""
    gives: Any = None
    """The type of the answer, as JSON."""
    gives_media: tuple[str, ...] = ("application/json",)
    """The media types that the answer may have."""
    status: int = 200
    """The status of a successful answer."""
    takes_lines: bool = False
    """Whether the body may also be a stream of lines."""
    is_public: bool = False
    """Whether no token is needed."""
    is_endless: bool = False
    """Whether the answer has no time limit, because it streams or may have much to do."""

    @property
    def role(self) -> Role:
        """The role that is needed: READ for a GET, ADMIN for a change."""
        return Role.READ if self.method == "GET" else Role.ADMIN


def add_routes(app: web.Application, context: Context, routes: Sequence[Route]) -> None:
    """Add routes to a server, below its prefix. A GET route answers HEAD, too."""
    for route in routes:
        for method in ("GET", "HEAD") if route.method == "GET" else (route.method,):
            path, handler = context.prefix + _matching(route.path), _handler(context, route)
            setattr(app.router.add_route(method, path, handler), ROUTE, route)


def _matching(path: str) -> str:
    """The path as a pattern of aiohttp. Its `{name}` would not match braces, which names of crawls
    may contain."""
    return re.sub(r"{(\w+)}", r"{\1:[^/]+}", path)


def _handler(context: Context, route: Route) -> Callable[[web.Request], Awaitable[Any]]:
    is_api = route.path.startswith("/api/")

    async def handle(request: web.Request) -> web.StreamResponse:
        return await route.answer(context, request)

    async def change(request: web.Request) -> web.StreamResponse:
        if is_api:
            await _check_no_ignored_input(route, request)
        try:
            return await route.answer(context, request)
        finally:
            context.sampler.forget()

    return handle if route.role is Role.READ else change


async def _check_no_ignored_input(route: Route, request: web.Request) -> None:
    """Refuse input that the route would ignore: its sender expects it to matter, for instance a
    `dry_run` in the query. Raises Problem."""
    if request.query:
        more = "; its fields go into the body" if route.body else ""
        raise Problem(400, f"query: this request takes none{more}")
    if route.body is None and (await request.read()).strip() not in (b"", b"{}"):
        raise Problem(400, "body: this request takes none")


def query_of(request: web.Request, form: type[T]) -> T:
    """The query parameters. Raises Problem if they are not valid."""
    if len(set(request.query)) < len(request.query):
        raise Problem(400, "query: a parameter is given more than once")
    try:
        return msgspec.convert(dict(request.query), form, strict=False)
    except (msgspec.ValidationError, ConfigError) as error:
        raise Problem(400, f"query: {error}") from None


async def body_of(request: web.Request, form: type[T]) -> T:
    """The body, decoded from JSON. Raises Problem if it is not valid."""
    if request.content_type != "application/json":
        raise Problem(415, "send application/json")
    try:
        text = await request.read()
        return msgspec.json.decode(text or b"{}", type=form)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Problem(400, f"body: {error}") from None


def json_response(value: Any, status: int = 200, **headers: str) -> web.Response:
    """An answer as JSON."""
    return web.Response(
        body=msgspec.json.encode(value),
        status=status,
        content_type="application/json",
        headers=headers,
    )
