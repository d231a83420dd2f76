"""Logs people in and out: exchanges a token for a cookie."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from aiohttp import web

from shoal.web.access import COOKIE, COOKIE_S
from shoal.web.context import Context
from shoal.web.problems import Problem
from shoal.web.routes import ROUTE, Route
from shoal.web.screens.pages import log_in_page

_OF_A_PATH = re.compile(r"/[!-\[\]-~]{0,8000}")
"""Visible ASCII without a backslash, which browsers take for a slash."""


async def ask(context: Context, request: web.Request) -> web.StreamResponse:
    """Show the form for a token."""
    return log_in_page(context, request)


async def log_in(context: Context, request: web.Request) -> web.StreamResponse:
    """Set a cookie if the token is valid. If not, show the form again."""
    fields = await request.post()
    given, then = str(fields.get("token", "")).strip(), str(fields.get("then", ""))
    if not is_own_page(request.app, then):
        then = context.url()
    if context.access.is_open:
        return _to(then)
    try:
        context.check_token(request, given)
    except Problem as problem:
        made = log_in_page(context, request, problem.status, problem.details.detail, then)
        made.headers.update(problem.headers)
        return made
    response = _to(then)
    response.set_cookie(
        COOKIE,
        context.access.cookie_for(given, time.time()),
        max_age=COOKIE_S,
        path=context.prefix or "/",
        httponly=True,
        samesite="Strict",
        # Behind a proxy that terminates TLS, only the browser's Origin shows that TLS is used.
        secure=request.secure or request.headers.get("Origin", "").startswith("https:"),
    )
    return response


async def log_out(context: Context, request: web.Request) -> web.StreamResponse:
    """Delete the cookie."""
    response = _to(context.url("login"))
    response.del_cookie(COOKIE, path=context.prefix or "/")
    return response


def is_own_page(app: web.Application, address: str) -> bool:
    """Whether an address that came with a form is the path of a page of this server, for which one
    has to be logged in. Nothing else may be redirected to: no other site, no line break."""
    if not _OF_A_PATH.fullmatch(address):
        return False
    path = address.partition("?")[0]
    if any(unquote(part) in (".", "..") for part in path.split("/")):
        return False  # The browser would go elsewhere.
    return any(
        route.method == "GET" and not route.is_public
        for resource in app.router.resources()
        if _matches(resource.get_info(), path)
        for declared in resource
        if isinstance(route := getattr(declared, ROUTE, None), Route)
    )


def _matches(info: Mapping[str, Any], path: str) -> bool:
    pattern = info.get("pattern")
    return bool(pattern.fullmatch(path)) if pattern else info.get("path") == path


def _to(address: str) -> web.Response:
    return web.Response(status=303, headers={"Location": address})


ROUTES = (
    Route(method="GET", path="/login", answer=ask, is_public=True),
    Route(method="POST", path="/login", answer=log_in, is_public=True),
    Route(method="POST", path="/logout", answer=log_out, is_public=True),
)
