"""The chore of bringing in the seeds of runs that have begun: a process for each."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec

from shoal.child import GAVE_UP
from shoal.coordinator.planter import Answer, Order
from shoal.coordinator.runs import RUNS, Records, Run, read_all
from shoal.coordinator.schedules import Schedule
from shoal.errors import ConfigError, UnknownCrawl
from shoal.frontier.port import Frontier
from shoal.frontier.values import Control

RETRY_S = 5.0
SAY_AGAIN_S = 300.0
MAX_TRIES = 5

log = logging.getLogger("shoal")


class PlanterFailed(Exception):
    """Seeds could not be brought in. The message is what the planter said."""

    def __init__(self, message: str, *, for_good: bool) -> None:
        super().__init__(message)
        self.for_good = for_good


class Planting:
    """Plants what has begun and is not planted. Used as a context: planters end with it."""

    def __init__(self, frontier: Frontier, records: Records, options: dict[str, Any]) -> None:
        self._frontier = frontier
        self._records = records
        self._options = options
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Planting:
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def look(self) -> None:
        """Begin with what is new. Raises what a planting raised that had ended."""
        for crawl, run in (await read_all(self._records.notes, RUNS, Run)).items():
            if not run.planted and crawl not in self._tasks:
                self._tasks[crawl] = asyncio.create_task(self._plant(run))
        for crawl, task in list(self._tasks.items()):
            if task.done():
                del self._tasks[crawl]
                task.result()

    async def _plant(self, run: Run) -> None:
        for attempt in range(1, MAX_TRIES + 1):
            try:
                async with saying_so(run.crawl):
                    await self._load(run)
                    await planted(Order(run, self._options))
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

    async def _load(self, run: Run) -> None:
        """Workers may begin while seeds still come, but not before they know the settings."""
        if run.spider is None:
            run.spider = (await planted(Order(run, self._options, only_check=True))).spider
            await self._records.write(RUNS, run.crawl, run)

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


async def check(schedule: Schedule, options: dict[str, Any]) -> str | None:
    """Why a schedule's spider cannot be loaded. None if it can."""
    run = Run(
        crawl=schedule.name,
        schedule=schedule.name,
        targets=schedule.targets,
        slot=0.0,
        fired_at=0.0,
        settings=schedule.settings,
        seeds=schedule.seeds,
    )
    try:
        await planted(Order(run, options, only_check=True))
    except PlanterFailed as error:
        return str(error)
    return None


async def planted(order: Order) -> Answer:
    """Let a planter do its work. Raises PlanterFailed."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "shoal.coordinator.planter"),
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
