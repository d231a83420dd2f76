"""Events of a crawl: what people did to it. The program that did it for them notes it beside the
crawl afterwards.

    events    CRAWL -> list[Event]    the last hundred, the oldest first

What happens to a crawl by itself is not noted: its timestamps, its runs and its alerts tell that.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection
from typing import Annotated

import msgspec
from msgspec import Meta

from shoal.errors import StorageBusy, StorageError
from shoal.frontier.board import Leader, Notes, decoded
from shoal.frontier.values import Control

EVENTS = "events"
KEPT = 100
LONGEST = 200
TRIES = 20
"""How often a note is tried again: when several programs note something at once, each must add to
what the others have noted."""

log = logging.getLogger("shoal")


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that happened to a crawl."""

    at: Annotated[float, Meta(ge=0, le=253_402_300_799)]
    event: Annotated[str, Meta(max_length=LONGEST)]
    text: Annotated[str, Meta(max_length=LONGEST)] = ""
    by: Annotated[str, Meta(max_length=LONGEST)] = ""
    """Where it came from: web, command, coordinator. Empty: it happened by itself."""


SEEDED, RETRIED, PURGED = "crawl.seeded", "crawl.retried", "crawl.purged"
STEERED = {
    Control.PAUSE: "crawl.paused",
    Control.RESUME: "crawl.resumed",
    Control.CANCEL: "crawl.cancelled",
}


async def note_event(
    notes: Notes, crawl: str, event: str, text: str = "", *, by: str, once_in_s: float = 0.0
) -> None:
    """Note that something was done. An event that is the same as the last one, and comes within
    `once_in_s` of it, is not noted. If the note fails, that is logged: the thing itself is done, so
    no StorageError is raised."""
    noted = Event(at=time.time(), event=event, text=text[:LONGEST], by=by)
    try:
        await _append(notes, crawl, noted, once_in_s)
    except StorageError as error:
        log.warning("%s of crawl %a is not noted: %s", event, crawl, error)


async def _append(notes: Notes, crawl: str, noted: Event, once_in_s: float) -> None:
    for _ in range(TRIES):
        known = await notes.read(EVENTS, crawl)
        events = _decoded(crawl, known)
        if events and events[-1].event == noted.event and noted.at - events[-1].at < once_in_s:
            return
        text = msgspec.json.encode([*events, noted][-KEPT:])
        if await notes.swap(EVENTS, crawl, known, text):
            return
    raise StorageBusy("too many events at once")


async def events_of(notes: Notes, crawl: str) -> list[Event]:
    """The events of a crawl, the oldest first."""
    return _decoded(crawl, await notes.read(EVENTS, crawl))


async def forget_events(notes: Notes, crawl: str) -> None:
    """Delete the events of a crawl that is being forgotten."""
    await notes.write(EVENTS, crawl, None)


async def forget_events_of_all_but(notes: Notes, crawls: Collection[str], leader: Leader) -> None:
    """Delete the events of crawls that do not exist any more. Raises Deposed."""
    for crawl in await notes.all(EVENTS):
        if crawl not in crawls:
            await notes.write(EVENTS, crawl, None, leader)


def _decoded(crawl: str, text: bytes | None) -> list[Event]:
    return (decoded(EVENTS, crawl, text, list[Event]) or [])[-KEPT:] if text else []
