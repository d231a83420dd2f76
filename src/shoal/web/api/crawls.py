"""Answers questions about crawls, and pauses, resumes, cancels and forgets them."""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal

import msgspec
from aiohttp import web
from msgspec import Meta

from shoal.errors import ConfigError
from shoal.frontier.events import STEERED, forget_events, note_event
from shoal.frontier.values import Control, CrawlState
from shoal.insight.explain import explain
from shoal.insight.history import ChartPoint, history
from shoal.insight.json import crawl_json, explanation_json, snapshot_json
from shoal.web.api.forms import CrawlForm, Page, SnapshotForm, StateForm
from shoal.web.context import Context
from shoal.web.etags import with_etag
from shoal.web.problems import Problem
from shoal.web.routes import Route, json_response, query_of

Limit = Annotated[int, Meta(ge=1, le=1000)]


class CrawlsQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Which crawls to list."""

    state: CrawlState | None = None
    q: Annotated[str, Meta(max_length=200)] = ""
    """Only crawls whose names contain this."""
    limit: Limit = 1000


class LimitQuery(msgspec.Struct, forbid_unknown_fields=True):
    """How many to list."""

    limit: Limit = 100


class ExplainQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Which URL to explain, and in which session."""

    url: Annotated[str, Meta(min_length=1, max_length=8000)]
    session: Annotated[str, Meta(min_length=1, max_length=200)] | None = None


class HistoryQuery(msgspec.Struct, forbid_unknown_fields=True):
    """How far back the history goes."""

    span: Literal["15m", "1h", "24h"] = "1h"


class NoQuery(msgspec.Struct, forbid_unknown_fields=True):
    """No parameters."""


async def list_crawls(context: Context, request: web.Request) -> web.StreamResponse:
    """Every crawl, the newest first."""
    query, now = query_of(request, CrawlsQuery), time.time()
    found = [
        stats
        for stats in await context.sampler.crawls()
        if (query.state is None or stats.state is query.state) and query.q in stats.crawl
    ]
    rows = [crawl_json(stats, now) for stats in found[: query.limit]]
    return json_response(Page(items=rows, total=len(found)))


async def get_crawl(context: Context, request: web.Request) -> web.StreamResponse:
    """A crawl's counters."""
    stats = await context.frontier.stats(crawl_of(request))
    return json_response(crawl_json(stats, time.time()))


async def get_snapshot(context: Context, request: web.Request) -> web.StreamResponse:
    """A crawl with its workers and hosts, as in `shoal status --json`."""
    crawl = crawl_of(request)

    async def look() -> bytes:
        seen = await context.sampler.crawl(crawl)
        return msgspec.json.encode(snapshot_json(seen, time.time()))

    return with_etag(request, await context.sampler.ask(("snapshot", crawl), look))


async def get_history(context: Context, request: web.Request) -> web.StreamResponse:
    """A point for each minute, from the history that the leader keeps."""
    query, crawl = query_of(request, HistoryQuery), crawl_of(request)
    await context.frontier.stats(crawl)
    points = await history(context.frontier.notes, crawl, query.span, time.time())
    return json_response(Page(items=points, total=len(points)))


async def forget(context: Context, request: web.Request) -> web.StreamResponse:
    """Forget a crawl that is over: its queue and what it has seen. Its results stay."""
    crawl = crawl_of(request)
    stats = await context.frontier.stats(crawl)
    if not stats.state.over:
        raise Problem(409, f"crawl '{crawl}' is {stats.state}: cancel it first")
    await context.frontier.forget(crawl)
    await forget_events(context.frontier.notes, crawl)
    return web.Response(status=204)


def steering(action: Control) -> Any:
    """The handler that pauses, resumes or cancels a crawl."""

    async def steer(context: Context, request: web.Request) -> web.StreamResponse:
        crawl = crawl_of(request)
        return json_response(StateForm(crawl, await control(context, crawl, action)))

    return steer


async def control(context: Context, crawl: str, action: Control) -> CrawlState:
    """Pause, resume or cancel a crawl. Returns its new state. Raises Problem if its state does not
    allow that."""
    await context.frontier.stats(crawl)
    try:
        state = await context.frontier.control(crawl, action)
    except ConfigError as error:
        raise Problem(409, str(error)) from None
    await note_event(context.frontier.notes, crawl, STEERED[action], by="web")
    return state


async def explain_url(context: Context, request: web.Request) -> web.StreamResponse:
    """What became of a URL."""
    query = query_of(request, ExplainQuery)
    explanation = await explain(
        context.frontier, context.results, crawl_of(request), query.url, query.session
    )
    return json_response(explanation_json(explanation))


def crawl_of(request: web.Request) -> str:
    """The crawl that the request's path names."""
    return request.match_info["crawl"]


def _get(path: str, answer: Any, summary: str, gives: Any, query: Any = NoQuery) -> Route:
    return Route(method="GET", path=path, answer=answer, summary=summary, gives=gives, query=query)


def _steer(action: Control, summary: str) -> Route:
    path = f"/api/v1/crawls/{{crawl}}/{action}"
    return Route(
        method="POST", path=path, answer=steering(action), summary=summary, gives=StateForm
    )


CRAWL = "/api/v1/crawls/{crawl}"
ROUTES = (
    _get(
        "/api/v1/crawls", list_crawls, "Every crawl, the newest first", Page[CrawlForm], CrawlsQuery
    ),
    _get(CRAWL, get_crawl, "A crawl's counters", CrawlForm),
    Route(
        method="DELETE",
        path=CRAWL,
        answer=forget,
        status=204,
        summary="Forget a crawl that is over; its results stay",
    ),
    _steer(Control.PAUSE, "Hand out nothing more until it is resumed"),
    _steer(Control.RESUME, "Go on with a crawl that was paused"),
    _steer(Control.CANCEL, "Drop all tasks that are not done; what was stored stays"),
    _get(f"{CRAWL}/snapshot", get_snapshot, "A crawl with its workers and hosts", SnapshotForm),
    _get(
        f"{CRAWL}/history", get_history, "A point for each minute", Page[ChartPoint], HistoryQuery
    ),
    _get(f"{CRAWL}/explain", explain_url, "What became of a URL", dict[str, Any], ExplainQuery),
)
