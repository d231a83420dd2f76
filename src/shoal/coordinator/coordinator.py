"""The coordinator: leads or stands by, and while it leads does one chore after the other.

Chores read and write notes in the frontier and nothing else that matters: whoever leads next goes
on where this one stopped.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from pathlib import Path
from typing import Any

from shoal.config import CONFIG_FILE
from shoal.coordinator.begin import Firing
from shoal.coordinator.leadership import Leadership
from shoal.coordinator.runs import Records
from shoal.coordinator.schedules import Schedule, ScheduleFile
from shoal.coordinator.seed_runs import PlanterFailed, Planting, settings_here
from shoal.coordinator.sweep import Steadiness, sweep
from shoal.coordinator.watch import Watching
from shoal.errors import ConfigError, StorageError, cause_of
from shoal.frontier.board import Deposed
from shoal.frontier.port import Frontier
from shoal.runtime.patience import wait_for_event

TICK_S = 0.5
SWEEP_EVERY_S = 60.0
SAY_AGAIN_S = 60.0

log = logging.getLogger("shoal")


class Coordinator:
    """One of any number of coordinators of a frontier."""

    def __init__(self, frontier: Frontier, options: dict[str, Any], folder: Path | None = None):
        """`options` are those of the command line: runs get them too."""
        self._frontier = frontier
        self._options = options
        self._file = ScheduleFile(folder or Path())
        self._leadership = Leadership(frontier.notes, os.getpid())
        self._steadiness = Steadiness()
        self._stopping = asyncio.Event()

    def drain(self) -> None:
        """Stop, and let others lead."""
        self._stopping.set()

    async def run(self) -> None:
        """Serve until told to stop."""
        self._tell()
        serving = asyncio.create_task(self._serve())
        stopped = asyncio.create_task(self._stopping.wait())
        checking = asyncio.create_task(self._check_targets())
        try:
            await asyncio.wait({serving, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                serving.result()  # It ends only by raising.
        finally:
            for task in (serving, stopped, checking):
                task.cancel()
            await asyncio.gather(serving, stopped, checking, return_exceptions=True)
            await self._leadership.resign()

    async def _serve(self) -> None:
        while True:
            leader = await self._leadership.gain()
            log.info("leading, term %d", leader.term)
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._leadership.hold(leader))
                    group.create_task(self._do_chores(Records(self._frontier.notes, leader)))
            except BaseExceptionGroup as group_error:
                cause = cause_of(group_error)
                if not isinstance(cause, Deposed):
                    raise cause from None
                log.warning("leading no longer: %s", cause)

    async def _do_chores(self, records: Records) -> None:
        firing = Firing(self._frontier, records)
        swept_at = trouble_at = -SWEEP_EVERY_S
        async with (
            Watching(self._frontier, records, self._options) as watching,
            Planting(self._frontier, records, self._options) as planting,
        ):
            while True:
                schedules = self._file.read()
                try:
                    # First: what is over is in nobody's way.
                    await watching.look(schedules, time.time())
                    await firing.look(schedules, time.time())
                    await planting.look(schedules)
                    if time.monotonic() - swept_at > SWEEP_EVERY_S:
                        await self._sweep(records, schedules)
                        swept_at = time.monotonic()
                except StorageError as error:  # It may pass, and then nothing was missed.
                    if time.monotonic() - trouble_at > SAY_AGAIN_S:
                        log.error("waiting: %s", error)
                        trouble_at = time.monotonic()
                await wait_for_event(self._stopping, TICK_S)

    async def _sweep(self, records: Records, schedules: dict[str, Schedule]) -> None:
        now = time.time()
        is_steady = self._steadiness.look(now, time.monotonic())
        await sweep(self._frontier, records, schedules, now, is_steady=is_steady)

    def _tell(self) -> None:
        schedules = self._file.read().values()
        log.info("schedules in %s: %d", CONFIG_FILE, len(schedules))
        for schedule in schedules:
            slot = schedule.calendar.next_after(time.time())
            when = schedule.calendar.local(slot).isoformat(" ", "seconds") if slot else "never"
            log.info("schedule %s: next run at %s", schedule.name, when)

    async def _check_targets(self) -> None:
        """Better now than at night. Each by itself: one may never end."""
        await asyncio.gather(*map(self._check_target, self._file.read().values()))

    async def _check_target(self, schedule: Schedule) -> None:
        try:
            await settings_here(schedule, self._options)
        except (PlanterFailed, ConfigError) as error:
            log.error("schedule %s: cannot run as it is: %s", schedule.name, error)
