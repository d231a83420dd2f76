"""The coordinator: waits until it is the leader, and then does its chores again and again.

All state of the chores is in notes in the frontier, so the next leader continues where this one
stopped.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from shoal.config import CONFIG_FILE
from shoal.coordinator.background import Background
from shoal.coordinator.begin import RunStarter
from shoal.coordinator.leadership import Leadership
from shoal.coordinator.runs import LeaderNotes
from shoal.coordinator.schedules import Schedule, schedule_file
from shoal.coordinator.seed_runs import RunSeeder, SeedingFailed, settings_here
from shoal.coordinator.sweep import Steadiness, sweep
from shoal.coordinator.watch import RunWatcher
from shoal.errors import ConfigError, StorageError, cause_of
from shoal.frontier.board import Deposed
from shoal.frontier.port import Frontier
from shoal.runtime.logs import about
from shoal.runtime.patience import NowAndThen, wait_for_event

TICK_S = 0.5
SWEEP_EVERY_S = 60.0
WARN_EVERY_S = 60.0

log = logging.getLogger("shoal")


class Duty(Protocol):
    """Continuous work that only the leader does, in parallel to its chores: see `Coordinator`."""

    async def do(self, leader_notes: LeaderNotes) -> None:
        """Work until cancelled, when another coordinator may lead. Raises Deposed.

        Must wait for a store that is away.
        """


class Coordinator:
    """One of any number of coordinators of a frontier, of which one leads."""

    def __init__(
        self,
        frontier: Frontier,
        options: dict[str, Any],
        folder: Path | None = None,
        duties: Sequence[Duty] = (),
    ) -> None:
        """`options` are those of the command line; runs get them too. `duties` are done while this
        coordinator leads."""
        self._frontier = frontier
        self._options = options
        self._duties = duties
        self._file = schedule_file(folder or Path())
        self._leadership = Leadership(frontier.notes, os.getpid())
        self._steadiness = Steadiness()
        self._stopping = asyncio.Event()

    def drain(self) -> None:
        """Stop, and let another coordinator lead."""
        self._stopping.set()

    async def run(self) -> None:
        """Lead or stand by until told to stop."""
        self._say_what_is_next()
        serving = asyncio.create_task(self._serve())
        stopped = asyncio.create_task(self._stopping.wait())
        checking = asyncio.create_task(self._check_targets())
        try:
            await asyncio.wait({serving, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                serving.result()  # Raises: this task only ends with an error.
        finally:
            for task in (serving, stopped, checking):
                task.cancel()
            await asyncio.gather(serving, stopped, checking, return_exceptions=True)
            await self._leadership.resign()

    async def _serve(self) -> None:
        while True:
            leader = await self._leadership.gain()
            log.info("leading, term %d", leader.term, extra=about(event="leader.begin"))
            try:
                async with asyncio.TaskGroup() as group:
                    leader_notes = LeaderNotes(self._frontier.notes, leader)
                    group.create_task(self._leadership.hold(leader))
                    group.create_task(self._do_chores(leader_notes))
                    for duty in self._duties:
                        group.create_task(duty.do(leader_notes))
            except BaseExceptionGroup as group_error:
                cause = cause_of(group_error)
                if not isinstance(cause, Deposed):
                    raise cause from None
                log.warning("leading no longer: %s", cause, extra=about(event="leader.end"))

    async def _do_chores(self, notes: LeaderNotes) -> None:
        warning = NowAndThen(WARN_EVERY_S)
        sweeping = NowAndThen(SWEEP_EVERY_S)
        async with Background() as seeding, Background() as closing:
            starter = RunStarter(self._frontier, notes)
            seeder = RunSeeder(self._frontier, notes, self._options, seeding)
            watcher = RunWatcher(self._frontier, notes, self._options, closing)
            while True:
                schedules = self._file.read()
                try:
                    # Close runs first, so that they do not keep new ones from beginning.
                    await watcher.look(schedules, time.time())
                    await starter.look(schedules, time.time())
                    await seeder.look(schedules)
                    if sweeping.is_due():
                        await self._sweep(notes, schedules)
                except StorageError as error:  # If it passes, nothing is lost.
                    if warning.is_due():
                        log.error("waiting: %s", error)
                await wait_for_event(self._stopping, TICK_S)

    async def _sweep(self, notes: LeaderNotes, schedules: dict[str, Schedule]) -> None:
        now = time.time()
        is_steady = self._steadiness.look(now, time.monotonic())
        await sweep(self._frontier, notes, schedules, now, is_steady=is_steady)

    def _say_what_is_next(self) -> None:
        schedules = self._file.read().values()
        log.info("schedules in %s: %d", CONFIG_FILE, len(schedules))
        for schedule in schedules:
            due_at = schedule.calendar.next_after(time.time())
            when = schedule.calendar.local(due_at).isoformat(" ", "seconds") if due_at else "never"
            log.info("schedule %s: next run at %s", schedule.name, when)

    async def _check_targets(self) -> None:
        """Load every schedule's spider, to find mistakes now and not when a run is due.

        All are loaded at once, as loading one of them may never end.
        """
        await asyncio.gather(*map(self._check_target, self._file.read().values()))

    async def _check_target(self, schedule: Schedule) -> None:
        try:
            await settings_here(schedule, self._options)
        except (SeedingFailed, ConfigError) as error:
            log.error("schedule %s: cannot run as it is: %s", schedule.name, error)
