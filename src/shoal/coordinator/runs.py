"""The runs of schedules, as coordinators and workers note them in the frontier.

Shelves, and who writes there:

    runs        CRAWL -> Run       the leader: runs that are under way
    past/NAME   CRAWL -> Run       the leader: runs of a schedule that are over, or were left out
    slots       NAME -> Standing   the leader: how far each schedule has come
    paused      NAME -> (nothing)  people: schedules that are to rest
    wishes      ID -> Wish         people: a run now, please; the leader strikes it out
"""

from __future__ import annotations

import os
from typing import Any, TypeVar

import msgspec

from shoal import config
from shoal.config import Settings
from shoal.frontier.notes import Leader, Notes

T = TypeVar("T")

RUNS = "runs"
SLOTS = "slots"
PAUSED = "paused"
WISHES = "wishes"


class Run(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One run of a schedule: a crawl of its own."""

    crawl: str
    schedule: str
    targets: list[str]
    slot: float
    """When it was due."""
    fired_at: float
    settings: dict[str, Any] = {}
    """Those that the schedule asks for."""
    spider: dict[str, Any] | None = None
    """Those of the spider's class. None until it was loaded: workers wait for that."""
    seeds: str | None = None
    sitemaps: list[str] = []
    previous: str | None = None
    """The finished run before it, if it is to be made use of."""
    deadline: float | None = None
    """When its window ends."""
    planted: bool = False
    """Whether all its seeds are in."""
    state: str = ""
    """How it ended: finished, cancelled, failed, skipped, missed, forgotten. Empty: it has not."""
    reason: str = ""
    started_at: float | None = None
    ended_at: float | None = None
    total: int = 0
    done: int = 0
    failed: int = 0
    dropped: int = 0
    items: int = 0
    unchanged: int = 0
    gone: int = 0
    is_forgotten: bool = False
    """Whether its queue is gone from the frontier."""

    @property
    def is_late(self) -> bool:
        """Whether it ended after its window."""
        return bool(self.deadline and self.ended_at and self.ended_at > self.deadline)


class Standing(msgspec.Struct, omit_defaults=True):
    """How far a schedule has come."""

    last: float
    """The slot that was dealt with last; of a new schedule, when it was first seen."""
    waiting: float | None = None
    """A slot whose run waits for the one before to end."""


class Wish(msgspec.Struct):
    """A run that somebody asked for."""

    schedule: str
    at: float


def settings_for(run: Run, options: dict[str, Any]) -> Settings:
    """The settings of a run, here: the schedule's win over everything but the command line."""
    wanted = run.settings | {name: at for name, at in options.items() if at is not None}
    if run.previous is not None:
        wanted |= {"previous": run.previous}
    return config.load(spider=run.spider, options=wanted, environ=os.environ)


def past(schedule: str) -> str:
    """The shelf of what became of a schedule's runs."""
    return f"past/{schedule}"


async def read(notes: Notes, shelf: str, name: str, form: type[T]) -> T | None:
    """One note."""
    text = await notes.read(shelf, name)
    return msgspec.json.decode(text, type=form) if text else None


async def read_all(notes: Notes, shelf: str, form: type[T]) -> dict[str, T]:
    """All notes of a shelf."""
    found = await notes.all(shelf)
    return {name: msgspec.json.decode(text, type=form) for name, text in found.items()}


async def history(notes: Notes, schedule: str) -> list[Run]:
    """What became of a schedule's runs, the newest first."""
    runs = await read_all(notes, past(schedule), Run)
    return sorted(runs.values(), key=lambda run: run.slot, reverse=True)


class Records:
    """The leader's pen: everything is written in the name of its term."""

    def __init__(self, notes: Notes, leader: Leader) -> None:
        self.notes = notes
        self.leader = leader

    async def write(self, shelf: str, name: str, value: msgspec.Struct | None) -> None:
        """Write a note, or strike it out. Raises Deposed."""
        text = None if value is None else msgspec.json.encode(value)
        await self.notes.write(shelf, name, text, self.leader)

    async def close(self, run: Run) -> None:
        """It is over. Done twice, or stopped in between, it does no harm."""
        await self.write(past(run.schedule), run.crawl, run)
        await self.write(RUNS, run.crawl, None)
