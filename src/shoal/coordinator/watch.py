"""The chore of watching runs: is one over, will one be late?"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from shoal.config import CONFIG_FILE, Settings
from shoal.coordinator.beside import Beside
from shoal.coordinator.lateness import lateness
from shoal.coordinator.runs import Records, Run, under_way
from shoal.coordinator.schedules import Schedule
from shoal.coordinator.seed_runs import PlanterFailed, settings_here
from shoal.errors import ConfigError, UnknownCrawl
from shoal.frontier.port import Overview
from shoal.frontier.values import CrawlState, Stats
from shoal.results import results_at
from shoal.worker.recrawl import mark_gone_items

SAY_AGAIN_S = 600.0
LOAD_S = 300.0
"""How long a spider may take to be loaded when its run is over."""

log = logging.getLogger("shoal")


class Watching:
    """Watches what is under way. Used as a context: what it is closing ends with it."""

    def __init__(self, frontier: Overview, records: Records, options: dict[str, Any]) -> None:
        self._frontier = frontier
        self._records = records
        self._options = options
        self._said: dict[str, float] = {}
        self._beside = Beside()

    async def __aenter__(self) -> Watching:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._beside.end()

    async def look(self, schedules: Mapping[str, Schedule], now: float) -> None:
        """Close what is over, warn of what is late. Raises what a closing raised that had ended."""
        for run in await under_way(self._records.notes):
            try:
                stats = await self._frontier.stats(run.crawl)
            except UnknownCrawl:
                if run.planted:
                    run.state, run.ended_at, run.is_forgotten = "forgotten", now, True
                    await self._records.close(run)
                continue
            if stats.state is CrawlState.CANCELLED or (stats.state.over and run.planted):
                schedule = schedules.get(run.schedule)
                self._beside.begin(run.crawl, partial(self._close, run, schedule, stats))
            else:
                self._warn(run, stats, now)
        self._beside.reap()

    def _warn(self, run: Run, stats: Stats, now: float) -> None:
        news = lateness(run.deadline, stats, now)
        if news and now - self._said.get(run.crawl, 0.0) >= SAY_AGAIN_S:
            self._said[run.crawl] = now
            log.error("%s is %s", run.crawl, news)

    async def _close(self, run: Run, schedule: Schedule | None, stats: Stats) -> None:
        gone = await self._mark_gone(run, schedule, stats)
        ended = msgspec.structs.replace(
            run,
            state=str(stats.state),
            started_at=stats.started_at,
            ended_at=stats.finished_at,
            total=stats.added,
            done=stats.done,
            failed=stats.dead,
            dropped=stats.dropped,
            items=stats.items,
            unchanged=stats.unchanged,
            gone=gone,
        )
        await self._records.close(ended)
        late = " late" if ended.is_late else ""
        log.info(
            "%s is %s%s: %s done, %s failed, %s items",
            *(run.crawl, stats.state, late),
            *(f"{count:,}" for count in (stats.done, stats.dead, stats.items)),
        )

    async def _mark_gone(self, run: Run, schedule: Schedule | None, stats: Stats) -> int:
        if stats.rules.previous is None:
            return 0
        try:
            settings = await self._settings(run, schedule)
            async with results_at(settings.results) as results:
                return await mark_gone_items(results, stats)
        except (ConfigError, PlanterFailed) as error:  # shoal.toml, or the store, was changed.
            log.error("%s: items that are gone are not marked: %s", run.crawl, error)
            return 0

    async def _settings(self, run: Run, schedule: Schedule | None) -> Settings:
        if schedule is None:
            raise ConfigError(f"schedule {run.schedule} is not in {CONFIG_FILE} here")
        try:
            async with asyncio.timeout(LOAD_S):
                return await settings_here(schedule, self._options)
        except TimeoutError:
            raise ConfigError(f"its spider was not loaded within {LOAD_S:g} s") from None
