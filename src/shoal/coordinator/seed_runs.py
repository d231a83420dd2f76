"""The chore of bringing in the seeds of runs that have begun: a process for each."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import msgspec

from shoal.config import CONFIG_FILE, Settings
from shoal.coordinator.beside import Beside
from shoal.coordinator.runs import RUNS, Records, Run, under_way
from shoal.coordinator.schedules import Schedule, settings_for
from shoal.coordinator.seed_process import Answer, Order
from shoal.errors import ConfigError, ShoalError, UnknownCrawl
from shoal.fleet.child import GAVE_UP
from shoal.frontier.port import Upkeep
from shoal.frontier.values import Control

RETRY_S = 5.0
SAY_AGAIN_S = 300.0
MAX_TRIES = 5

log = logging.getLogger("shoal")


class PlanterFailed(ShoalError):
    """A planter could not do its work. The message is what it said."""

    def __init__(self, message: str, *, for_good: bool) -> None:
        super().__init__(message)
        self.for_good = for_good


class Planting:
    """Plants what has begun and is not planted. Used as a context: planters end with it."""

    def __init__(self, frontier: Upkeep, records: Records, options: dict[str, Any]) -> None:
        self._frontier = frontier
        self._records = records
        self._options = options
        self._beside = Beside()

    async def __aenter__(self) -> Planting:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._beside.end()

    async def look(self, schedules: Mapping[str, Schedule]) -> None:
        """Begin with what is new. Raises what a planting raised that had ended."""
        for run in await under_way(self._records.notes):
            if not run.planted:
                self._beside.begin(run.crawl, partial(self._plant, run, schedules))
        self._beside.reap()

    async def _plant(self, run: Run, schedules: Mapping[str, Schedule]) -> None:
        schedule = schedules.get(run.schedule)
        if schedule is None:
            await self._give_up(run, f"schedule {run.schedule} is not in {CONFIG_FILE} here")
            return
        for attempt in range(1, MAX_TRIES + 1):
            try:
                async with saying_so(run.crawl):
                    await planted(Order(schedule, self._options, run))
            except PlanterFailed as error:
                if error.for_good or attempt == MAX_TRIES:
                    await self._give_up(run, str(error))
                    return
                log.warning("%s: seeding failed (%s); once more", run.crawl, error)
                await asyncio.sleep(RETRY_S)
            else:
                run.planted = True
                if await self._is_open(run):
                    await self._records.write(RUNS, run.crawl, run)
                return

    async def _is_open(self, run: Run) -> bool:
        """Somebody may have cancelled it meanwhile. Then it is over, and stays so."""
        return await self._records.notes.read(RUNS, run.crawl) is not None

    async def _give_up(self, run: Run, reason: str) -> None:
        """A run that cannot begin is over, and workers leave what there is of it."""
        if not await self._is_open(run):
            return
        log.error("%s: cannot begin: %s", run.crawl, reason)
        with suppress(UnknownCrawl, ConfigError):  # Not there, or over already.
            await self._frontier.control(run.crawl, Control.CANCEL)
        run.state, run.reason, run.ended_at = "failed", reason, time.time()
        await self._records.close(run)


@asynccontextmanager
async def saying_so(crawl: str) -> AsyncIterator[None]:
    """Tells of seeds that take long: their spider may stand still."""

    async def say() -> None:
        while True:
            await asyncio.sleep(SAY_AGAIN_S)
            log.warning("%s: its seeds are still coming", crawl)

    saying = asyncio.create_task(say())
    try:
        yield
    finally:
        saying.cancel()


async def settings_here(schedule: Schedule, options: dict[str, Any]) -> Settings:
    """The settings of a schedule's runs on this machine. Its spider is asked for its own, in a
    process apart: here no code of the user's runs. Raises PlanterFailed and ConfigError."""
    spider = (await planted(Order(schedule, options))).spider
    return settings_for(schedule, spider, options)


async def planted(order: Order) -> Answer:
    """Let a planter do its work. Raises PlanterFailed."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "shoal.coordinator.seed_process"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None  # noqa: S101 - we asked for pipes
    assert process.stdout is not None  # noqa: S101
    try:
        with suppress(ProcessLookupError, RuntimeError, ConnectionError):  # It may be dead already.
            process.stdin.write(msgspec.json.encode(order) + b"\n")
        said = await process.stdout.read()
        code = await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if code == 0 and said:
        return msgspec.json.decode(said, type=Answer)
    words = said.decode("utf-8", "replace") or f"its process ended with code {code}, unheard"
    raise PlanterFailed(words, for_good=code == GAVE_UP)
