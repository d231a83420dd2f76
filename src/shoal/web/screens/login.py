"""Logs people in and out: exchanges a token for a cookie."""

from __future__ import annotations

import time

from aiohttp import web

from shoal.web.access import COOKIE, COOKIE_S
from shoal.web.context import Context
from shoal.web.problems import Problem
from shoal.web.routes import Route
from shoal.web.screens.pages import log_in_page


async def ask(context: Context, request: web.Request) -> web.StreamResponse:
    """Show the form for a token."""
    return log_in_page(context, request)


async def log_in(context: Context, request: web.Request) -> web.StreamResponse:
    """Set a cookie if the token is valid. If not, show the form again."""
    given = str((await request.post()).get("token", "")).strip()
    if context.access.is_open:
        return _to_start(context)
    try:
        context.check_token(request, given)
    except Problem as problem:
        made = log_in_page(context, request, problem.status, problem.details.detail)
        made.headers.update(problem.headers)
        return made
    response = _to_start(context)
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
    response = web.Response(status=303, headers={"Location": context.url("login")})
    response.del_cookie(COOKIE, path=context.prefix or "/")
    return response


def _to_start(context: Context) -> web.Response:
    return web.Response(status=303, headers={"Location": context.url()})


ROUTES = (
    Route(method="GET", path="/login", answer=ask, is_public=True),
    Route(method="POST", path="/login", answer=log_in, is_public=True),
    Route(method="POST", path="/logout", answer=log_out, is_public=True),
)
