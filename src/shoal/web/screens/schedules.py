"""The screen of schedules: when they are due, their past runs, and buttons to run or pause them."""

from __future__ import annotations

import secrets
import time

from aiohttp import web

from shoal.coordinator.plan import Planned, plan
from shoal.coordinator.run_requests import set_paused
from shoal.coordinator.runs import Run, history
from shoal.coordinator.schedules import load_schedules
from shoal.insight.figures import duration
from shoal.insight.schedule_rows import outcome, run_row
from shoal.web import charts
from shoal.web.api.schedules import MAX_KEY, request_run, schedule_of
from shoal.web.context import Context
from shoal.web.routes import Route
from shoal.web.screens.live import AnyCell, Cell, Live, table
from shoal.web.screens.pages import ScreenContent, screen

LAST = 10
RUNS = 50


async def look(context: Context, request: web.Request) -> ScreenContent:
    """Every schedule, in the order of shoal.toml."""
    now = time.time()
    planned = await plan(context.frontier, load_schedules(context.folder), now)
    leader = await context.frontier.notes.leader()
    live = Live(text={"leader": leader.holder if leader else "nobody, so no run begins"})
    last: list[Run] = []
    for number, each in enumerate(planned):
        runs = (await history(context.frontier.notes, each.name))[:LAST]
        _add(live, str(number), each, runs, now)
        last += runs
    last.sort(key=lambda run: run.due_at, reverse=True)
    live.tables["runs"] = table([_row(context, run) for run in last], RUNS)
    # The key makes a button that is pressed twice ask for only one run.
    more = {"planned": planned, "key": secrets.token_hex(8)}
    return ScreenContent(title="Schedules", live=live, more=more)


def _row(context: Context, run: Run) -> list[AnyCell]:
    where = "" if run.is_forgotten else context.url("crawls", run.crawl)
    late = ", late" if run.is_late else ""
    kind = "late" if late else run.state
    return [
        Cell(run.crawl, h=where),
        Cell(f"{run.state}{late}", k=kind),
        *run_row(run)[2:],
        run.reason,
    ]


def _add(live: Live, number: str, each: Planned, runs: list[Run], now: float) -> None:
    due = "paused" if each.is_paused else "never"
    if each.next_at is not None:
        due = f"in {duration(max(each.next_at - now, 0.0))} · {_moment(each.next_local or '')}"
    running = ", ".join(each.running) + (f" ({each.late})" if each.late else "")
    live.text |= {
        f"next{number}": due,
        f"now{number}": running or "–",
        f"last{number}": outcome(each.last) if each.last else "–",
    }
    took = [
        (run.ended_at - run.started_at) if run.ended_at and run.started_at else 0.0
        for run in reversed(runs)
    ]
    live.paths[f"runs{number}"] = charts.bars(took)


def _moment(local: str) -> str:
    """A time in the schedule's time zone, which the page names beside it. Zero seconds are left
    out."""
    return local[:19].removesuffix(":00")


async def run_now(context: Context, request: web.Request) -> web.StreamResponse:
    """Ask for a run out of turn."""
    key = str((await request.post()).get("key", ""))[:MAX_KEY] or None
    asked = await request_run(context, schedule_of(context, request), key)
    return _back(context, did="run" if asked.is_led else "waits")


async def pause(context: Context, request: web.Request) -> web.StreamResponse:
    """Pause a schedule: no run begins until it is resumed."""
    await set_paused(context.frontier.notes, schedule_of(context, request), is_paused=True)
    return _back(context)


async def resume(context: Context, request: web.Request) -> web.StreamResponse:
    """Resume a schedule, from its next due time."""
    await set_paused(context.frontier.notes, schedule_of(context, request), is_paused=False)
    return _back(context)


def _back(context: Context, **query: str) -> web.Response:
    return web.Response(status=303, headers={"Location": context.url("schedules", query=query)})


ROUTES = (
    *screen("/schedules", "schedules.html", look, "schedules"),
    Route(method="POST", path="/schedules/{name}/run", answer=run_now),
    Route(method="POST", path="/schedules/{name}/pause", answer=pause),
    Route(method="POST", path="/schedules/{name}/resume", answer=resume),
)
