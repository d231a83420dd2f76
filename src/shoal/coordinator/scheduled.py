"""Workers for scheduled runs: a fleet for each run while it is under way."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shoal.config import CONFIG_FILE
from shoal.coordinator.runs import Run, under_way
from shoal.coordinator.schedules import Schedule, schedule_file
from shoal.coordinator.seed_runs import settings_here
from shoal.errors import ShoalError, StorageError, UnknownCrawl
from shoal.fetch.http.client import warn_of_proxies
from shoal.fleet.child import WorkerOrder
from shoal.fleet.fleet import Fleet, release_dead
from shoal.frontier.port import UpkeepAndNotes
from shoal.runtime.patience import NowAndThen, wait_for_event

LOOK_EVERY_S = 1.0
RETRY_S = 30.0
"""How long to wait before workers are started again for a run where that failed."""
WARN_EVERY_S = 600.0
SHOWN = 5
"""How many schedules are named in a log line."""

log = logging.getLogger("shoal")


class ScheduledWorkers:
    """Runs workers on this machine for the scheduled runs of a frontier.

    The frontier only names the schedules whose runs are under way. What a schedule runs is read
    from the shoal.toml of this machine.
    """

    def __init__(
        self, frontier: UpkeepAndNotes, options: Mapping[str, Any], folder: Path | None = None
    ) -> None:
        """`options` are those of the command line. They apply to every run."""
        self._frontier = frontier
        self._options = dict(options)
        self._file = schedule_file(folder or Path())
        self._fleets: dict[str, Fleet] = {}
        self._draining = asyncio.Event()
        self._is_waiting = False
        self._warning = NowAndThen(WARN_EVERY_S)

    async def run(self) -> None:
        """Work on scheduled runs until told to stop."""
        warn_of_proxies(os.environ)
        serving: dict[str, asyncio.Task[None]] = {}
        while not self._draining.is_set():
            serving = {crawl: task for crawl, task in serving.items() if not task.done()}
            schedules = self._file.read()
            for run in self._known(await self._open_runs(), schedules):
                if run.crawl not in serving:
                    work = self._serve(run, schedules[run.schedule])
                    serving[run.crawl] = asyncio.create_task(work)
            await wait_for_event(self._draining, LOOK_EVERY_S)
        await self._wait_for(serving)

    async def _wait_for(self, serving: dict[str, asyncio.Task[None]]) -> None:
        """Wait for the runs that have workers, and cancel those whose spiders are still loading."""
        for crawl, task in serving.items():
            if crawl not in self._fleets:
                task.cancel()
        for ended in await asyncio.gather(*serving.values(), return_exceptions=True):
            if isinstance(ended, Exception):
                raise ended

    def drain(self) -> None:
        """Stop gently: workers take no new tasks, and finish or give back those they have."""
        self._draining.set()
        for fleet in self._fleets.values():
            fleet.drain()

    def kill(self) -> None:
        """Stop all workers at once."""
        for fleet in self._fleets.values():
            fleet.kill()

    def _known(self, runs: list[Run], schedules: Mapping[str, Schedule]) -> list[Run]:
        unknown = sorted({run.schedule for run in runs if run.schedule not in schedules})
        if unknown and self._warning.is_due():
            named = ", ".join(unknown[:SHOWN])
            log.warning("left to others: schedules that are not in %s here: %s", CONFIG_FILE, named)
        return [run for run in runs if run.schedule in schedules]

    async def _open_runs(self) -> list[Run]:
        try:
            runs = await under_way(self._frontier.notes)
            found = [run for run in runs if await self._is_open(run)]
        except StorageError as error:
            if not self._is_waiting:
                log.warning("waiting for the frontier: %s", error)
            self._is_waiting = True
            return []

        if self._is_waiting:
            log.warning("the frontier is back")
            self._is_waiting = False
        return found

    async def _is_open(self, run: Run) -> bool:
        try:
            return not (await self._frontier.stats(run.crawl)).state.over
        except UnknownCrawl:
            return False

    async def _serve(self, run: Run, schedule: Schedule) -> None:
        log.info("working on %s", run.crawl)
        try:
            settings = await settings_here(schedule, self._options)
            await release_dead(self._frontier, run.crawl)
            if self._draining.is_set():
                return
            order = WorkerOrder(run.crawl, schedule.targets, settings, closes=True)
            fleet = Fleet(order, self._frontier)
            self._fleets[run.crawl] = fleet
            await fleet.run()
        except ShoalError as error:
            log.error("%s: %s; trying again in %d s", run.crawl, error, RETRY_S)
            await wait_for_event(self._draining, RETRY_S)
        else:
            log.info("no more work on %s", run.crawl)
        finally:
            self._fleets.pop(run.crawl, None)
