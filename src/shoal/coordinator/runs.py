"""The runs of schedules, as coordinators and workers note them in the frontier.

Topics as they are stored, and who writes there:

    runs        CRAWL -> Run              the leader: runs that are under way
    past/NAME   CRAWL -> Run              the leader: runs that are over, or were left out
    slots       NAME -> ScheduleProgress  the leader: how far each schedule has come
    paused      NAME -> (nothing)         people: schedules that are to rest
    wishes      ID -> RunRequest          people: a run now, please; the leader removes it

Whoever can write to the frontier can write notes. So they name a schedule and nothing else: what it
runs, and with which settings, each process reads in its own shoal.toml.
"""

from __future__ import annotations

import logging
import re
from typing import Annotated

import msgspec
from msgspec import Meta

from shoal.frontier.board import Leader, Notes, read_all

Moment = Annotated[float, Meta(ge=0, le=253_402_300_799)]
"""Seconds since 1970, up to the year 9999: what a clock can show."""

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
    """The finished run before it, if it is to be made use of."""
    deadline: Moment | None = None
    """When its window ends."""
    is_seeded: bool = msgspec.field(name="planted", default=False)
    """Whether all its seeds are in."""
    state: str = ""
    """How it ended: finished, cancelled, failed, skipped, missed, forgotten. Empty: it has not."""
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
    """Whether its queue is gone from the frontier."""

    def __post_init__(self) -> None:
        if schedule_of(self.crawl) != self.schedule:
            raise ValueError("its crawl is none of its schedule's")

    @property
    def is_late(self) -> bool:
        """Whether it ended after its window."""
        return bool(self.deadline and self.ended_at and self.ended_at > self.deadline)


class ScheduleProgress(msgspec.Struct, omit_defaults=True):
    """How far a schedule has come."""

    last: Moment
    """The due time that was dealt with last; of a new schedule, when it was first seen."""
    waiting: Moment | None = None
    """The due time of a run that waits for the one before it to end."""


class RunRequest(msgspec.Struct):
    """A run that somebody asked for."""

    schedule: str
    at: Moment


def schedule_of(crawl: str) -> str | None:
    """The schedule that a crawl of this name is a run of. None: it is of none."""
    named = _is_run(crawl)
    return named[1] if named else None


def past(schedule: str) -> str:
    """The topic of what became of a schedule's runs."""
    return f"past/{schedule}"


async def under_way(notes: Notes) -> list[Run]:
    """The runs that have begun and were not closed."""
    runs = await read_all(notes, RUNS, Run)
    return [run for name, run in runs.items() if name == run.crawl]


async def history(notes: Notes, schedule: str) -> list[Run]:
    """What became of a schedule's runs, the newest first."""
    runs = await read_all(notes, past(schedule), Run)
    return sorted(runs.values(), key=lambda run: run.due_at, reverse=True)


class LeaderNotes:
    """Notes as the leader writes them: in the name of its term."""

    def __init__(self, notes: Notes, leader: Leader) -> None:
        self.notes = notes
        self.leader = leader

    async def write(self, topic: str, name: str, value: msgspec.Struct | None) -> None:
        """Write a note, or remove it (None). Raises Deposed."""
        text = None if value is None else msgspec.json.encode(value)
        await self.notes.write(topic, name, text, self.leader)

    async def close(self, run: Run) -> None:
        """Note that a run is over. Done twice, or stopped half-way, it does no harm."""
        await self.write(past(run.schedule), run.crawl, run)
        await self.write(RUNS, run.crawl, None)
