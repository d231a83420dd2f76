"""shoal schedule: shows and steers the schedules of shoal.toml and their runs."""

from __future__ import annotations

import time
from contextlib import AbstractAsyncContextManager
from typing import Annotated, Any

import typer
from rich.table import Table

from shoal.cli import display
from shoal.cli.examples import examples
from shoal.cli.options import JsonFlag, settings_from, show_help, with_settings
from shoal.coordinator.plan import Planned, plan
from shoal.coordinator.run_requests import ask_for_run, set_paused
from shoal.coordinator.runs import Run, history
from shoal.coordinator.schedules import load_schedules, named
from shoal.frontier import frontier_at
from shoal.frontier.port import Frontier
from shoal.insight.json import run_json, schedules_json
from shoal.insight.schedule_rows import PLAN_COLUMNS, RUN_COLUMNS, plan_row, run_row
from shoal.runtime.eventloop import run as run_loop

app = typer.Typer(
    help="Scheduled runs, as set in shoal.toml.",
    callback=show_help,
    invoke_without_command=True,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The schedule's name.")]
SomeName = Annotated[
    str | None, typer.Argument(metavar="NAME", help="The schedule's name. [default: all]")
]
Limit = Annotated[int, typer.Option(min=1, help="Show at most this many runs of each schedule.")]


@app.command("list")
@with_settings("frontier")
@examples(
    "shoal schedule list --frontier redis://queue-host",
)
def list_(options: dict[str, Any], json: JsonFlag = False) -> None:
    """List schedules: next, current and last run."""
    run_loop(_list(options, json=json))


@app.command("run")
@with_settings("frontier")
@examples(
    "shoal schedule run shop",
)
def run_now(name: Name, options: dict[str, Any]) -> None:
    """Run a schedule now, before it is due.

    The leading coordinator begins the run.
    """
    display.say(run_loop(_ask_for_run(options, name)))


@app.command()
@with_settings("frontier")
@examples("shoal schedule pause shop")
def pause(name: Name, options: dict[str, Any]) -> None:
    """Pause a schedule: no run begins until `resume`. Runs that have begun go on."""
    run_loop(_set_paused(options, name, is_paused=True))
    display.say(f"{name}: paused")


@app.command()
@with_settings("frontier")
@examples("shoal schedule resume shop")
def resume(name: Name, options: dict[str, Any]) -> None:
    """Resume a schedule, from its next due time on."""
    run_loop(_set_paused(options, name, is_paused=False))
    display.say(f"{name}: resumed")


@app.command("history")
@with_settings("frontier")
@examples("shoal schedule history shop --json")
def history_(
    options: dict[str, Any], name: SomeName = None, limit: Limit = 20, json: JsonFlag = False
) -> None:
    """List runs that are over or were left out. The newest come first.

    `same` counts pages that had not changed since the previous run. `gone` counts items that the
    previous run found and this one did not.
    """
    run_loop(_history(options, name, limit, json=json))


def _frontier_of(options: dict[str, Any]) -> AbstractAsyncContextManager[Frontier]:
    settings = settings_from(options)
    return frontier_at(settings.frontier, settings.state)


async def _list(options: dict[str, Any], *, json: bool) -> None:
    schedules = load_schedules()
    async with _frontier_of(options) as frontier:
        planned = await plan(frontier, schedules, time.time())
        leader = await frontier.notes.leader()
    if json:
        display.print_json(schedules_json(planned, leader))
        return
    if planned:
        display.out().print(_plan_table(planned))
    else:
        display.say("shoal.toml has no [[schedule]] here")
    display.say("")
    display.say(f"led by {leader.holder}" if leader else _NOBODY_LEADS)


_NOBODY_LEADS = "no coordinator is running, and no run begins without one: start `shoal serve`"


def _plan_table(planned: list[Planned]) -> Table:
    return display.table(PLAN_COLUMNS, map(plan_row, planned))


async def _ask_for_run(options: dict[str, Any], name: str) -> str:
    schedule = named(load_schedules(), name)
    async with _frontier_of(options) as frontier:
        crawl = await ask_for_run(frontier.notes, schedule, time.time())
        if await frontier.notes.leader() is None:
            return f"{crawl}: waiting, {_NOBODY_LEADS}"
    return f"{crawl}: begins"


async def _set_paused(options: dict[str, Any], name: str, *, is_paused: bool) -> None:
    schedule = named(load_schedules(), name)
    async with _frontier_of(options) as frontier:
        await set_paused(frontier.notes, schedule, is_paused=is_paused)


async def _history(options: dict[str, Any], name: str | None, limit: int, *, json: bool) -> None:
    schedules = load_schedules()
    names = [named(schedules, name).name] if name else list(schedules)
    runs: list[Run] = []
    async with _frontier_of(options) as frontier:
        for schedule in names:
            runs += (await history(frontier.notes, schedule))[:limit]
    runs.sort(key=lambda run: run.due_at, reverse=True)
    if json:
        display.print_json([run_json(run) for run in runs])
    elif runs:
        display.out().print(_history_table(runs))
    else:
        display.say("no runs yet")


def _history_table(runs: list[Run]) -> Table:
    table = display.table(RUN_COLUMNS, map(run_row, runs))
    table.columns[0].no_wrap = table.columns[1].no_wrap = True
    return table
