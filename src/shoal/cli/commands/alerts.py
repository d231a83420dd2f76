"""shoal alerts: lists alerts, and tests the routes by which they are sent."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer
from rich.table import Table

from shoal.alerts import sending
from shoal.alerts.config import AlertConfig, load_alerts
from shoal.alerts.messages import alert_json
from shoal.alerts.notes import alerts_now, alerts_past
from shoal.alerts.routes import Route
from shoal.alerts.states import AlertState
from shoal.cli import display
from shoal.cli.examples import examples
from shoal.cli.options import JsonFlag, existing_stores, show_help, with_settings
from shoal.config import Settings
from shoal.errors import ConfigError
from shoal.frontier import frontier_at
from shoal.insight.figures import duration
from shoal.runtime.eventloop import run
from shoal.runtime.process import machine_name

app = typer.Typer(
    help="Alerts: what is wrong with crawls.",
    callback=show_help,
    invoke_without_command=True,
)

RouteName = Annotated[
    str | None, typer.Argument(metavar="ROUTE", help="The route's name. [default: all]")
]
PastFlag = Annotated[bool, typer.Option("--past", help="Show resolved alerts instead.")]


@app.command("list")
@with_settings("frontier")
@examples("shoal alerts list", "shoal alerts list --past --json")
def list_(options: dict[str, Any], past: PastFlag = False, json: JsonFlag = False) -> None:
    """List alerts that are pending or firing. The latest come first.

    The leading coordinator finds them: see `shoal serve`. A pending alert has not lasted long
    enough to be sent.
    """
    run(_list(existing_stores(options), past=past, json=json))


@app.command("test")
@examples("shoal alerts test", "shoal alerts test ops")
def try_routes(route: RouteName = None) -> None:
    """Send a test alert by the routes of shoal.toml.

    The exit code is 1 if one of them did not accept it.
    """
    routes = _chosen(load_alerts(), route)
    failures = run(sending.try_routes(routes, machine_name(), time.time()))
    for name in routes:
        if name in failures:
            display.say(f"{name}: not delivered: {failures[name]}", err=True)
        else:
            display.say(f"{name}: delivered")
    if failures:
        raise typer.Exit(1)


async def _list(stores: Settings, *, past: bool, json: bool) -> None:
    async with frontier_at(stores.frontier, stores.state) as frontier:
        notes = frontier.notes
        alerts = await (alerts_past(notes) if past else alerts_now(notes))
        leader = await notes.leader()
    if json:
        display.print_json([alert_json(alert) for alert in alerts])
        return
    if alerts:
        display.out().print(_table(alerts, time.time()))
    else:
        display.say("no alerts")
    if leader is None:
        display.say("nobody is watching: start `shoal serve`", err=True)


def _table(alerts: list[AlertState], now: float) -> Table:
    rows = (
        (state.alert, state.crawl, state.state, _ago(state, now), state.text) for state in alerts
    )
    return display.table(("alert", "crawl", "state", "for", "what"), rows)


def _ago(state: AlertState, now: float) -> str:
    return duration(max((state.resolved_at or now) - state.since, 0.0))


def _chosen(config: AlertConfig, name: str | None) -> dict[str, Route]:
    if not config.routes:
        raise ConfigError("shoal.toml has no [alerts.routes.NAME] here")
    if name is None:
        return config.routes
    if name not in config.routes:
        raise ConfigError(f"no route {name!r} (there are: {', '.join(config.routes)})")
    return {name: config.routes[name]}
