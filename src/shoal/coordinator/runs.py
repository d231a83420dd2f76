"""The runs of schedules, stored as notes in the frontier.

The stored topics, and who writes them:

    runs        CRAWL -> Run              the leader: runs that are under way
    past/NAME   CRAWL -> Run              the leader: runs that are over or were left out
    slots       NAME -> ScheduleProgress  the leader: the progress of each schedule
    paused      NAME -> (no value)        people: paused schedules
    wishes      ID -> RunRequest          people: requests for a run; the leader removes them

Everybody with write access to the frontier can write notes. So a note only names a schedule; each
process reads in its own shoal.toml what that schedule runs, and with which settings.
"""

from __future__ import annotations

import logging
import re
from typing import Annotated

import msgspec
from msgspec import Meta

from shoal.frontier.board import Leader, Notes, read_all

Moment = Annotated[float, Meta(ge=0, le=253_402_300_799)]
"""A time in seconds since 1970, up to the year 9999."""

RUNS = "runs"
PROGRESS = "slots"
PAUSED = "paused"
RUN_REQUESTS = "wishes"

log = logging.getLogger("shoal")

_is_run = re.compile(r"([A-Za-z0-9_.-]+)@[0-9T:+-]+").fullmatch


class Run(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One run of a schedule: a crawl of its own."""

    crawl: str
    schedule: str
    due_at: Moment = msgspec.field(name="slot")
    fired_at: Moment
    previous: str | None = None
    """The finished run before this one, if this one builds on it."""
    deadline: Moment | None = None
    """When its window ends."""
    is_seeded: bool = msgspec.field(name="planted", default=False)
    """Whether all its seeds are in the frontier."""
    state: str = ""
    """How the run ended: finished, cancelled, failed, skipped, missed, forgotten. Empty while it is
    under way."""
    reason: str = ""
    started_at: Moment | None = None
    ended_at: Moment | None = None
    total: int = 0
    done: int = 0
    failed: int = 0
    dropped: int = 0
    items: int = 0
    unchanged: int = 0
    gone: int = 0
    is_forgotten: bool = False
    """Whether its crawl was removed from the frontier."""

    def __post_init__(self) -> None:
        if schedule_of(self.crawl) != self.schedule:
            raise ValueError("its crawl is none of its schedule's")

    @property
    def is_late(self) -> bool:
        """Whether the run ended after its window."""
        return bool(self.deadline and self.ended_at and self.ended_at > self.deadline)


class ScheduleProgress(msgspec.Struct, omit_defaults=True):
    """How far a schedule has come."""

    last: Moment
    """The last due time that was handled; for a new schedule, when it was first seen."""
    waiting: Moment | None = None
    """The due time of a run that waits for the one before it to end."""


class RunRequest(msgspec.Struct):
    """A request for a run."""

    schedule: str
    at: Moment


def schedule_of(crawl: str) -> str | None:
    """The schedule of the run with this crawl name. None if it is not a run of a schedule."""
    named = _is_run(crawl)
    return named[1] if named else None


def past(schedule: str) -> str:
    """The topic of a schedule's past runs."""
    return f"past/{schedule}"


async def under_way(notes: Notes) -> list[Run]:
    """The runs that have begun and are not closed yet."""
    runs = await read_all(notes, RUNS, Run)
    return [run for name, run in runs.items() if name == run.crawl]


async def history(notes: Notes, schedule: str) -> list[Run]:
    """The past runs of a schedule, newest first."""
    runs = await read_all(notes, past(schedule), Run)
    return sorted(runs.values(), key=lambda run: run.due_at, reverse=True)


class LeaderNotes:
    """Writes notes as the leader of a term."""

    def __init__(self, notes: Notes, leader: Leader) -> None:
        self.notes = notes
        self.leader = leader

    async def write(self, topic: str, name: str, value: msgspec.Struct | None) -> None:
        """Write a note, or remove it (None). Raises Deposed if another coordinator leads now."""
        text = None if value is None else msgspec.json.encode(value)
        await self.notes.write(topic, name, text, self.leader)

    async def close(self, run: Run) -> None:
        """Move a run to the past runs. Safe to repeat, also after stopping half-way."""
        await self.write(past(run.schedule), run.crawl, run)
        await self.write(RUNS, run.crawl, None)
