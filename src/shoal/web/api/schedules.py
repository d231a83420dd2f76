"""Lists schedules and their runs, starts runs out of turn, and pauses schedules."""

from __future__ import annotations

import time
from typing import Any

from aiohttp import web

from shoal.coordinator.plan import plan
from shoal.coordinator.run_requests import ask_for_run, set_paused
from shoal.coordinator.runs import history
from shoal.coordinator.schedules import Schedule, load_schedules
from shoal.insight.json import run_json, schedules_json
from shoal.web.api.crawls import LimitQuery, NoQuery
from shoal.web.api.forms import BegunForm, Page, PausedForm, SchedulesForm
from shoal.web.context import Context
from shoal.web.problems import Problem
from shoal.web.routes import Route, json_response, query_of

MAX_KEY = 200


async def list_schedules(context: Context, request: web.Request) -> web.StreamResponse:
    """All schedules of the shoal.toml that this server reads."""
    query_of(request, NoQuery)
    schedules = load_schedules(context.folder)
    planned = await plan(context.frontier, schedules, time.time())
    return json_response(schedules_json(planned, await context.frontier.notes.leader()))


async def list_runs(context: Context, request: web.Request) -> web.StreamResponse:
    """The past runs of a schedule, the newest first."""
    query, schedule = query_of(request, LimitQuery), schedule_of(context, request)
    runs = await history(context.frontier.notes, schedule.name)
    shown = [run_json(run) for run in runs[: query.limit]]
    return json_response(Page(items=shown, total=len(runs)))


async def run(context: Context, request: web.Request) -> web.StreamResponse:
    """Ask for a run now. Requests with the same Idempotency-Key ask for the same run."""
    key = request.headers.get("Idempotency-Key")
    if key is not None and not 0 < len(key) <= MAX_KEY:
        raise Problem(400, f"Idempotency-Key: 1 to {MAX_KEY} characters")
    return json_response(await request_run(context, schedule_of(context, request), key), status=202)


async def request_run(context: Context, schedule: Schedule, key: str | None = None) -> BegunForm:
    """Ask for a run of a schedule."""
    crawl = await ask_for_run(context.frontier.notes, schedule, time.time(), key)
    return BegunForm(crawl, await context.frontier.notes.leader() is not None)


def pausing(is_paused: bool) -> Any:
    """The handler that pauses or resumes a schedule."""

    async def pause(context: Context, request: web.Request) -> web.StreamResponse:
        schedule = schedule_of(context, request)
        await set_paused(context.frontier.notes, schedule, is_paused=is_paused)
        return json_response(PausedForm(schedule.name, is_paused))

    return pause


def schedule_of(context: Context, request: web.Request) -> Schedule:
    """The schedule that the request's path names. Raises Problem if there is none."""
    name = request.match_info["name"]
    schedule = load_schedules(context.folder).get(name)
    if schedule is None:
        raise Problem(404, f"no schedule named {name!r} here")
    return schedule


SCHEDULE = "/api/v1/schedules/{name}"
ROUTES = (
    Route(
        method="GET",
        path="/api/v1/schedules",
        answer=list_schedules,
        summary="All schedules, and who leads",
        query=NoQuery,
        gives=SchedulesForm,
    ),
    Route(
        method="GET",
        path=f"{SCHEDULE}/runs",
        answer=list_runs,
        summary="Its past runs, the newest first",
        query=LimitQuery,
        gives=Page[dict[str, Any]],
    ),
    Route(
        method="POST",
        path=f"{SCHEDULE}/run",
        answer=run,
        summary="Ask for a run now; an Idempotency-Key makes repeating safe",
        gives=BegunForm,
        status=202,
    ),
    Route(
        method="POST",
        path=f"{SCHEDULE}/pause",
        answer=pausing(True),
        summary="Begin no run until it is resumed",
        gives=PausedForm,
    ),
    Route(
        method="POST",
        path=f"{SCHEDULE}/resume",
        answer=pausing(False),
        summary="Go on from its next due time",
        gives=PausedForm,
    ),
)
