"""Schedules and coordinators for tests with real processes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TypeVar

from shoal.coordinator.runs import PROGRESS, RUNS, Run, history
from shoal.frontier.board import Notes, read_all
from shoal.frontier.port import Frontier
from support.processes import Folder, Running
from support.until import until_now

T = TypeVar("T")

SCHEDULE = """
[[schedule]]
name = "shop"
target = "links.py"
cron = "{cron}"
{more}
"""
NEVER = "0 0 29 2 *"
"""A time that comes only every four years."""


class Office:
    """The schedules, runs and coordinators of one folder."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder

    def schedule(self, cron: str = NEVER, more: str = "") -> None:
        """Write the folder's only schedule."""
        self.folder.write("shoal.toml", SCHEDULE.format(cron=cron, more=more))

    def leader(self) -> int | None:
        """The process ID of the leading coordinator, if there is one."""
        leader = self._ask(lambda notes: notes.leader())
        return int(leader.holder.partition(":")[2].partition("-")[0]) if leader else None

    def has_seen_the_schedule(self) -> bool:
        """Whether a leader has noted the schedule."""
        return self._ask(lambda notes: notes.read(PROGRESS, "shop")) is not None

    def runs(self) -> dict[str, Run]:
        """The runs that are under way."""
        return self._ask(lambda notes: read_all(notes, RUNS, Run))

    def past(self) -> list[Run]:
        """The past runs, newest first."""
        return self._ask(lambda notes: history(notes, "shop"))

    def begin(self) -> str:
        """Request a run now, and return its crawl."""
        ended = self.folder.shoal("schedule", "run", "shop")
        assert ended.code == 0, ended
        return ended.out.partition(": ")[0]

    def leads(self, coordinator: Running) -> None:
        """Wait until this coordinator leads."""
        until_now("a leader", lambda: self.leader() == coordinator.pid)

    def schedule_soon(self) -> float:
        """Schedule a run in a few seconds, which a leader knows of more than a second before.
        Returns its due time."""
        while True:
            due_at = float(int(time.time()) + 4)
            at = datetime.fromtimestamp(due_at, UTC)
            self.schedule(f"{at.second} {at.minute} {at.hour} {at.day} {at.month} *")
            until_now("the schedule to be seen", self.has_seen_the_schedule)
            if time.time() < due_at - 1.5:
                return due_at

    def _ask(self, ask: Callable[[Notes], Awaitable[T]]) -> T:
        async def asked(frontier: Frontier) -> T:
            return await ask(frontier.notes)

        return asyncio.run(self.folder.ask_frontier(asked))
