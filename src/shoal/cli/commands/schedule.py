"""shoal schedule: what shoal.toml has scheduled, and what became of it."""

from __future__ import annotations

import secrets
import time
from typing import Annotated, Any

import msgspec
import typer
from rich.table import Table

from shoal.cli import display
from shoal.cli.examples import examples
from shoal.cli.options import JsonFlag, settings_from, show_help, with_settings
from shoal.coordinator.cron import run_name
from shoal.coordinator.plan import Planned, plan
from shoal.coordinator.runs import PAUSED, RUN_REQUESTS, Run, RunRequest, history
from shoal.coordinator.schedules import load_schedules, named
from shoal.frontier import frontier_at
from shoal.insight.json import run_json, schedules_json
from shoal.runtime.eventloop import run as run_loop

app = typer.Typer(
    help="Runs at set times: the [[schedule]] tables of shoal.toml.",
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
    """List all schedules, with the next, the current and the last run."""
    run_loop(_list(options, json=json))


@app.command("run")
@with_settings("frontier")
@examples(
    "shoal schedule run shop",
)
def run_now(name: Name, options: dict[str, Any]) -> None:
    """Run a schedule now, without waiting until it is due.

    The coordinator that leads begins the run.
    """
    display.say(run_loop(_ask_for_run(options, name)))


@app.command()
@with_settings("frontier")
@examples("shoal schedule pause shop")
def pause(name: Name, options: dict[str, Any]) -> None:
    """Pause a schedule: no run begins until `resume`. Runs that have begun go on."""
    run_loop(_rest(options, name, b"paused"))
    display.say(f"{name}: paused")


@app.command()
@with_settings("frontier")
@examples("shoal schedule resume shop")
def resume(name: Name, options: dict[str, Any]) -> None:
    """Resume a schedule that was paused, from its next due time on."""
    run_loop(_rest(options, name, None))
    display.say(f"{name}: resumed")


@app.command("history")
@with_settings("frontier")
@examples("shoal schedule history shop --json")
def history_(
    options: dict[str, Any], name: SomeName = None, limit: Limit = 20, json: JsonFlag = False
) -> None:
    """List runs that are over or were left out, the newest first.

    `same` counts pages that had not changed since the run before. `gone` counts items that the run
    before had found and this one did not.
    """
    run_loop(_history(options, name, limit, json=json))


async def _list(options: dict[str, Any], *, json: bool) -> None:
    schedules = load_schedules()
    async with frontier_at(settings_from(options).frontier) as frontier:
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
    return display.table(("schedule", "next", "now", "last"), map(_plan_row, planned))


def _plan_row(at: Planned) -> tuple[str, ...]:
    now = "paused" if at.is_paused else ""
    if at.running:
        now = ", ".join(at.running) + (f" ({at.late})" if at.late else "")
    last = f"{at.last.crawl}: {_outcome(at.last)}" if at.last else ""
    return at.name, at.next_local or "never", now, last


async def _ask_for_run(options: dict[str, Any], name: str) -> str:
    schedule = named(load_schedules(), name)
    now = float(int(time.time()))
    async with frontier_at(settings_from(options).frontier) as frontier:
        request = msgspec.json.encode(RunRequest(name, now))
        await frontier.notes.write(RUN_REQUESTS, secrets.token_hex(8), request)
        crawl = run_name(name, schedule.calendar, now)
        if await frontier.notes.leader() is None:
            return f"{crawl}: waiting, {_NOBODY_LEADS}"
    return f"{crawl}: begins"


async def _rest(options: dict[str, Any], name: str, text: bytes | None) -> None:
    named(load_schedules(), name)
    async with frontier_at(settings_from(options).frontier) as frontier:
        await frontier.notes.write(PAUSED, name, text)


async def _history(options: dict[str, Any], name: str | None, limit: int, *, json: bool) -> None:
    schedules = load_schedules()
    names = [named(schedules, name).name] if name else list(schedules)
    runs: list[Run] = []
    async with frontier_at(settings_from(options).frontier) as frontier:
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
    columns = ("run", "state", "took", "total", "done", "failed", "items", "same", "gone")
    table = display.table(columns, map(_run_row, runs))
    table.columns[0].no_wrap = table.columns[1].no_wrap = True
    return table


def _run_row(run: Run) -> tuple[str, ...]:
    took = run.ended_at - run.started_at if run.ended_at and run.started_at else None
    numbers = (run.total, run.done, run.failed, run.items, run.unchanged, run.gone)
    return (
        run.crawl,
        _outcome(run),
        display.duration(took) if took is not None else "",
        *(f"{n:,}" if run.started_at else "" for n in numbers),
    )


def _outcome(run: Run) -> str:
    late = ", late" if run.is_late else ""
    return f"{run.state}{late}: {run.reason}" if run.reason else f"{run.state}{late}"
