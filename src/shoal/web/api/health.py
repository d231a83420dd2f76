"""Answers probes: whether this process runs, and whether the frontier answers."""

from __future__ import annotations

from typing import Literal

import msgspec
from aiohttp import web

from shoal.web.context import Context
from shoal.web.routes import Route, json_response


class Health(msgspec.Struct):
    """The answer if all is well. Otherwise the answer is a problem."""

    status: Literal["ok"] = "ok"


async def healthz(context: Context, request: web.Request) -> web.Response:
    """Show that this process answers."""
    return json_response(Health())


async def readyz(context: Context, request: web.Request) -> web.Response:
    """Show that the frontier answers, too. Raises StorageError."""
    await context.sampler.ask("ready", context.frontier.notes.leader)
    return json_response(Health())


ROUTES = (
    Route(
        method="GET",
        path="/healthz",
        answer=healthz,
        gives=Health,
        is_public=True,
        summary="Whether this process answers",
    ),
    Route(
        method="GET",
        path="/readyz",
        answer=readyz,
        gives=Health,
        is_public=True,
        summary="Whether the frontier answers, too",
    ),
)
