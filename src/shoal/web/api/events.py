"""Lists what happened to a crawl: its start and end, its run, its alerts and what people did.

The number of events is bounded, so there is no stream: clients poll the list.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import Meta

from shoal.alerts.notes import alerts_now, alerts_past
from shoal.alerts.states import AlertState
from shoal.coordinator.runs import RUNS, Run, past, schedule_of
from shoal.core import plaintext
from shoal.frontier.board import Notes, read
from shoal.frontier.events import LONGEST, Event, events_of
from shoal.frontier.values import Stats
from shoal.web.api.crawls import CRAWL, crawl_of
from shoal.web.api.forms import Page
from shoal.web.context import Context
from shoal.web.cursors import Place, cursor_at, place_at
from shoal.web.routes import Route, json_response, query_of

CLOCKS_S = 60.0
"""How far clocks may differ. Events that are older than the crawl by more than this belong to an
earlier crawl of the same name."""


class EventsQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Which events to list."""

    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    cursor: Annotated[str, Meta(max_length=200)] | None = None


class EventForm(msgspec.Struct):
    """Something that happened to a crawl."""

    at: float
    event: str
    text: str
    by: str


async def list_events(context: Context, request: web.Request) -> web.StreamResponse:
    """The events of a crawl, the newest first."""
    query, crawl = query_of(request, EventsQuery), crawl_of(request)
    after = place_at(query.cursor)
    events = await happened(context, crawl)
    places = {_place(event): event for event in events}
    rest = sorted((place for place in places if after is None or place < after), reverse=True)
    shown = rest[: query.limit]
    more = cursor_at(shown[-1]) if len(rest) > len(shown) else None
    forms = [EventForm(at.at, at.event, at.text, at.by) for at in map(places.__getitem__, shown)]
    return json_response(Page(items=forms, total=len(places), cursor=more))


async def happened(context: Context, crawl: str) -> list[Event]:
    """All known events of a crawl, in no particular order. Raises UnknownCrawl."""
    stats, notes = await context.frontier.stats(crawl), context.frontier.notes
    noted = await events_of(notes, crawl)
    found = [
        *_of_crawl(stats, {event.event for event in noted}),
        *noted,
        *await _of_run(notes, crawl),
        *(event for alert in await alerts_now(notes) for event in _of_alert(alert, crawl)),
        *(event for alert in await alerts_past(notes) for event in _of_alert(alert, crawl)),
    ]
    return [event for event in found if event.at >= stats.created_at - CLOCKS_S]


def _of_crawl(stats: Stats, noted: set[str]) -> Iterator[Event]:
    yield Event(at=stats.created_at, event="crawl.created")
    if stats.started_at is not None:
        yield Event(at=stats.started_at, event="crawl.started")
    ended = f"crawl.{stats.state}"
    # A cancelled crawl has an event already: whoever cancelled it has noted that.
    if stats.finished_at is not None and ended not in noted:
        yield Event(at=stats.finished_at, event=ended)


async def _of_run(notes: Notes, crawl: str) -> list[Event]:
    schedule = schedule_of(crawl)
    if schedule is None:
        return []
    run = await read(notes, RUNS, crawl, Run) or await read(notes, past(schedule), crawl, Run)
    if run is None:
        return []
    begun = [Event(at=run.fired_at, event="run.begin", by="coordinator")]
    if run.ended_at is None:
        return begun
    ended = Event(
        at=run.ended_at, event=f"run.{run.state}", text=_short(run.reason), by="coordinator"
    )
    return [*begun, ended]


def _of_alert(alert: AlertState, crawl: str) -> Iterator[Event]:
    if alert.crawl != crawl or alert.fired_at is None:
        return
    text = _short(f"{alert.alert}: {alert.text}")
    yield Event(at=alert.fired_at, event="alert.firing", text=text)
    if alert.resolved_at is not None:
        yield Event(at=alert.resolved_at, event="alert.resolved", text=text)


def _short(text: str) -> str:
    return plaintext.one_line(text)[:LONGEST]


def _place(event: Event) -> Place:
    """The event's place in the list. Equal events have the same place."""
    return Place(event.at, blake2b(msgspec.json.encode(event), digest_size=8).digest())


ROUTES = (
    Route(
        method="GET",
        path=f"{CRAWL}/events",
        answer=list_events,
        summary="What happened to a crawl, the newest first",
        query=EventsQuery,
        gives=Page[EventForm],
    ),
)
