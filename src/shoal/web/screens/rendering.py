"""Renders HTML from templates. Text from outside passes filters that make it harmless and limit its
length."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

import jinja2
from aiohttp import web

from shoal.core import plaintext
from shoal.insight.figures import counted
from shoal.version import __version__
from shoal.web.access import Role
from shoal.web.context import Context
from shoal.web.guard import ROLE
from shoal.web.screens.live import Live

NAV = ("crawls", "workers", "hosts", "schedules", "alerts", "explain")
DETAIL = 20_000
"""How many characters of a traceback are shown, from its end, where the cause is."""


@cache
def _environment() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("shoal.web", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["line"] = plaintext.one_line
    made.filters["lines"] = plaintext.lines
    made.filters["cut"] = _cut
    made.filters["end"] = _end
    made.filters["moment"] = _moment
    made.tests["web_address"] = lambda url: url.startswith(("http://", "https://"))
    return made


@cache
def static_file(name: str) -> bytes:
    """The content of a static file."""
    return (files("shoal.web") / "static" / name).read_bytes()


@cache
def _digest(name: str) -> str:
    return sha256(static_file(name)).hexdigest()[:12]


def _cut(text: str, most: int) -> str:
    """The beginning of a text of any length."""
    more = len(text) - most
    return text if more <= 0 else f"{text[:most]}… and {more:,} characters more"


def _moment(at: float) -> str:
    """A time in UTC, for lists that do not refresh."""
    return datetime.fromtimestamp(at, UTC).strftime("%d %b %H:%M")


def _end(text: str) -> str:
    """The end of a traceback."""
    more = len(text) - DETAIL
    return text if more <= 0 else f"{more:,} characters, and then\n…{text[-DETAIL:]}"


def rendered(
    context: Context, request: web.Request, template: str, status: int, **values: Any
) -> web.Response:
    """A page from a template."""
    usual = {"current": "", "live_url": "", "live": Live(), "reloads": True}
    given = usual | {"is_asked_again": False} | values
    text = (
        _environment()
        .get_template(template)
        .render(
            url=context.url,
            static=lambda name: context.url("static", name, query={"v": _digest(name)}),
            nav=NAV,
            version=__version__,
            may_change=request.get(ROLE) is Role.ADMIN,
            is_open=context.access.is_open,
            did=_did(request),
            **given,
        )
    )
    return web.Response(text=text, content_type="text/html", status=status)


_DONE = {
    "retried": "{} queued again.",
    "purged": "{} dropped.",
    "seeded": "{} added.",
    "cancelled": "Cancelled: {} dropped.",
    "run": "A run was asked for.",
    "waits": "A run was asked for. It begins when a coordinator leads.",
}


def _did(request: web.Request) -> str:
    """The outcome of the last action, from the query. It only selects among fixed texts and fills
    in numbers, so a forged link cannot make the page show other text."""
    template = _DONE.get(request.query.get("did", ""), "")
    text = template.format(counted(_number(request, "count"), "task"))
    if template and (known := _number(request, "known")):
        text += f" {known:,} known already."
    return text


def _number(request: web.Request, name: str) -> int:
    text = request.query.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 12 else 0
