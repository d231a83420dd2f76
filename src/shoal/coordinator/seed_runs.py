"""The chore of adding the seeds of runs that have begun, in one process for each."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import msgspec

from shoal.config import CONFIG_FILE, Settings
from shoal.coordinator.background import Background
from shoal.coordinator.runs import RUNS, LeaderNotes, Run, under_way
from shoal.coordinator.schedules import Schedule, settings_for
from shoal.coordinator.seed_process import SeedAnswer, SeedOrder
from shoal.errors import ConfigError, ShoalError, UnknownCrawl
from shoal.frontier.port import Upkeep
from shoal.frontier.values import Control
from shoal.runtime.orders import child_process

RETRY_S = 5.0
WARN_EVERY_S = 300.0
MAX_TRIES = 5

log = logging.getLogger("shoal")


class SeedingFailed(ShoalError):
    """A seeding process has failed. The message is its last words."""

    def __init__(self, message: str, *, for_good: bool) -> None:
        super().__init__(message)
        self.for_good = for_good


class RunSeeder:
    """Adds the seeds of runs that have begun and are not seeded yet."""

    def __init__(
        self,
        frontier: Upkeep,
        leader_notes: LeaderNotes,
        options: dict[str, Any],
        background: Background,
    ) -> None:
        self._frontier = frontier
        self._leader_notes = leader_notes
        self._options = options
        self._background = background

    async def look(self, schedules: Mapping[str, Schedule]) -> None:
        """Begin seeding new runs. Raises the error of a run whose seeding failed unexpectedly."""
        for run in await under_way(self._leader_notes.notes):
            if not run.is_seeded:
                self._background.begin(run.crawl, partial(self._seed, run, schedules))
        self._background.reap()

    async def _seed(self, run: Run, schedules: Mapping[str, Schedule]) -> None:
        schedule = schedules.get(run.schedule)
        if schedule is None:
            await self._give_up(run, f"schedule {run.schedule} is not in {CONFIG_FILE} here")
            return
        for attempt in range(1, MAX_TRIES + 1):
            try:
                async with _reminding(run.crawl):
                    await seed_in_process(SeedOrder(schedule, self._options, run))
            except SeedingFailed as error:
                if error.for_good or attempt == MAX_TRIES:
                    await self._give_up(run, str(error))
                    return
                log.warning("%s: seeding failed (%s); trying again", run.crawl, error)
                await asyncio.sleep(RETRY_S)
            else:
                run.is_seeded = True
                if await self._is_open(run):
                    await self._leader_notes.write(RUNS, run.crawl, run)
                return

    async def _is_open(self, run: Run) -> bool:
        """Whether a run is still under way. If it was cancelled meanwhile, it must stay closed."""
        return await self._leader_notes.notes.read(RUNS, run.crawl) is not None

    async def _give_up(self, run: Run, reason: str) -> None:
        """Close a run that cannot begin, and cancel its crawl so that workers leave it."""
        if not await self._is_open(run):
            return
        log.error("%s: cannot begin: %s", run.crawl, reason)
        with suppress(UnknownCrawl, ConfigError):  # The crawl does not exist, or is over already.
            await self._frontier.control(run.crawl, Control.CANCEL)
        run.state, run.reason, run.ended_at = "failed", reason, time.time()
        await self._leader_notes.close(run)


@asynccontextmanager
async def _reminding(crawl: str) -> AsyncIterator[None]:
    """Warn regularly while seeding takes long, as the spider may be blocked."""

    async def warn() -> None:
        while True:
            await asyncio.sleep(WARN_EVERY_S)
            log.warning("%s: still being seeded", crawl)

    warning = asyncio.create_task(warn())
    try:
        yield
    finally:
        warning.cancel()


async def settings_here(schedule: Schedule, options: dict[str, Any]) -> Settings:
    """The settings of a schedule's runs on this machine. Raises SeedingFailed and ConfigError.

    The settings of the spider come from a separate process, as no user code runs in this one.
    """
    spider = (await seed_in_process(SeedOrder(schedule, options))).spider
    return settings_for(schedule, spider, options)


async def seed_in_process(order: SeedOrder) -> SeedAnswer:
    """Carry out the order in a separate process. Raises SeedingFailed."""
    async with child_process("shoal.coordinator.seed_process") as child:
        child.tell(order)
        ended = await child.ended()
    if ended.code == 0 and ended.last_words:
        return msgspec.json.decode(ended.last_words, type=SeedAnswer)
    reason = ended.last_words or f"its process said nothing, and ended with {ended.how}"
    raise SeedingFailed(reason, for_good=ended.gave_up)
