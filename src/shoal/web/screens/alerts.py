"""The screen of alerts: current ones, resolved ones, and routes, by which a test can be sent."""

from __future__ import annotations

import time
from collections.abc import Mapping

from aiohttp import web

from shoal.alerts.config import load_alerts
from shoal.alerts.notes import alerts_now, alerts_past
from shoal.alerts.routes import KINDS
from shoal.alerts.states import AlertState
from shoal.errors import ConfigError
from shoal.insight.figures import duration
from shoal.web.api.monitoring import send_test
from shoal.web.context import Context
from shoal.web.routes import Route
from shoal.web.screens.live import AnyCell, Cell, Live, table
from shoal.web.screens.pages import ScreenContent, page, screen

MOST = 100

_NAMES = {form: name for name, form in KINDS.items()}


async def look(context: Context, request: web.Request) -> ScreenContent:
    """The current and resolved alerts, and the routes of shoal.toml."""
    now, notes = time.time(), context.frontier.notes
    found = sorted(await alerts_now(notes), key=lambda one: one.state != "firing")
    firing = [_row(context, one, now) for one in found]
    past = [_past_row(context, one, now) for one in await alerts_past(notes)]
    live = Live(tables={"now": table(firing, MOST), "past": table(past, MOST)})
    routes: Mapping[str, str] = {}
    wrong = ""
    try:
        known = load_alerts(context.folder).routes
        routes = {name: _NAMES[type(route)] for name, route in known.items()}
    # Somebody may be editing the file. Meanwhile alerts are sent by the last valid routes.
    except ConfigError as error:
        wrong = str(error)
    return ScreenContent(title="Alerts", live=live, more={"routes": routes, "wrong": wrong})


def _row(context: Context, one: AlertState, now: float) -> list[AnyCell]:
    return [
        one.alert,
        Cell(one.state, k="bad" if one.state == "firing" else one.state),
        _crawl(context, one),
        duration(max((one.resolved_at or now) - one.since, 0.0)),
        one.text,
    ]


def _past_row(context: Context, one: AlertState, now: float) -> list[AnyCell]:
    ended = one.resolved_at or now
    return [
        one.alert,
        _crawl(context, one),
        duration(max(ended - one.since, 0.0)),
        f"{duration(max(now - ended, 0.0))} ago",
        one.text,
    ]


def _crawl(context: Context, one: AlertState) -> Cell:
    return Cell(one.crawl, h=context.url("crawls", one.crawl) if one.crawl else "")


async def try_route(context: Context, request: web.Request) -> web.StreamResponse:
    """Send a test by one route, and show the outcome."""
    tested = await send_test(context, str((await request.post()).get("route", "")))
    return await page(
        context, request, "alerts_tested.html", title="A test was sent", current="alerts",
        tested={tested.route: tested.failure},
    )  # fmt: skip


ROUTES = (
    *screen("/alerts", "alerts.html", look, "alerts"),
    # Endless, because a test is tried three times, which may take longer than other answers.
    Route(method="POST", path="/alerts/test", answer=try_route, is_endless=True),
)
