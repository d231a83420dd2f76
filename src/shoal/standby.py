"""Workers for whatever is scheduled: a fleet for each run, as long as it is under way."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from typing import Any

from shoal.coordinator.runs import RUNS, Run, read_all, settings_for
from shoal.errors import ShoalError, StorageError, UnknownCrawl
from shoal.fetch.http import warn_of_proxies
from shoal.fleet import Fleet, release_dead
from shoal.frontier.port import Frontier
from shoal.waiting import wait_for_event

LOOK_EVERY_S = 1.0
RETRY_S = 30.0
"""A run for which workers could not even begin is tried again so much later."""

log = logging.getLogger("shoal")


class Standby:
    """Serves all runs of a frontier's schedules, on this machine."""

    def __init__(self, frontier: Frontier, options: Mapping[str, Any]) -> None:
        """`options` are those of the command line: they hold for every run."""
        self._frontier = frontier
        self._options = dict(options)
        self._fleets: dict[str, Fleet] = {}
        self._draining = asyncio.Event()
        self._is_waiting = False

    async def run(self) -> None:
        """Serve until told to stop."""
        warn_of_proxies(os.environ)
        serving: dict[str, asyncio.Task[None]] = {}
        while not self._draining.is_set():
            serving = {crawl: task for crawl, task in serving.items() if not task.done()}
            for run in await self._open_runs():
                if run.crawl not in serving:
                    serving[run.crawl] = asyncio.create_task(self._serve(run))
            await wait_for_event(self._draining, LOOK_EVERY_S)
        await asyncio.gather(*serving.values())

    def drain(self) -> None:
        """No new work; what is in hand is finished or given back."""
        self._draining.set()
        for fleet in self._fleets.values():
            fleet.drain()

    def kill(self) -> None:
        """Stop at once."""
        for fleet in self._fleets.values():
            fleet.kill()

    async def _open_runs(self) -> list[Run]:
        try:
            runs = (await read_all(self._frontier.notes, RUNS, Run)).values()
            found = [run for run in runs if run.spider is not None and await self._is_open(run)]
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

    async def _serve(self, run: Run) -> None:
        log.info("working on %s", run.crawl)
        try:
            settings = settings_for(run, self._options)
            await release_dead(self._frontier, run.crawl)
            fleet = Fleet(run.crawl, run.targets, settings, self._frontier)
            self._fleets[run.crawl] = fleet
            await fleet.run()
        except ShoalError as error:
            log.error("%s: %s; next try in %d s", run.crawl, error, RETRY_S)
            await wait_for_event(self._draining, RETRY_S)
        else:
            log.info("no more work on %s", run.crawl)
        finally:
            self._fleets.pop(run.crawl, None)
