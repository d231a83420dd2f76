"""The chore of watching runs: closes those that are over, and warns of those that are late."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from shoal.config import CONFIG_FILE, Settings
from shoal.coordinator.background import Background
from shoal.coordinator.lateness import lateness
from shoal.coordinator.runs import LeaderNotes, Run, under_way
from shoal.coordinator.schedules import Schedule
from shoal.coordinator.seed_runs import SeedingFailed, settings_here
from shoal.errors import ConfigError, UnknownCrawl
from shoal.frontier.port import Queries
from shoal.frontier.values import CrawlState, Stats
from shoal.results import results_at
from shoal.runtime.logs import about
from shoal.runtime.patience import NowAndThen
from shoal.worker.visits.recrawl import mark_gone_items

WARN_EVERY_S = 600.0
LOAD_S = 300.0
"""How long loading a spider may take when its run is over."""

log = logging.getLogger("shoal")


class RunWatcher:
    """Closes runs that are over, and warns of runs that are or will be late."""

    def __init__(
        self,
        frontier: Queries,
        leader_notes: LeaderNotes,
        options: dict[str, Any],
        background: Background,
    ) -> None:
        self._frontier = frontier
        self._leader_notes = leader_notes
        self._options = options
        self._background = background
        self._warnings: dict[str, NowAndThen] = defaultdict(lambda: NowAndThen(WARN_EVERY_S))

    async def look(self, schedules: Mapping[str, Schedule], now: float) -> None:
        """Look at all runs under way. Raises the error of a run that could not be closed."""
        for run in await under_way(self._leader_notes.notes):
            try:
                stats = await self._frontier.stats(run.crawl)
            except UnknownCrawl:
                if run.is_seeded:
                    run.state, run.ended_at, run.is_forgotten = "forgotten", now, True
                    await self._leader_notes.close(run)
                continue
            if stats.state is CrawlState.CANCELLED or (stats.state.over and run.is_seeded):
                schedule = schedules.get(run.schedule)
                self._background.begin(run.crawl, partial(self._close, run, schedule, stats))
            else:
                self._warn(run, stats, now)
        self._background.reap()

    def _warn(self, run: Run, stats: Stats, now: float) -> None:
        news = lateness(run.deadline, stats, now)
        if news and self._warnings[run.crawl].is_due():
            fields = about(event="run.late", crawl=run.crawl)
            log.error("%s is %s", run.crawl, news, extra=fields)

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
        await self._leader_notes.close(ended)
        late = " late" if ended.is_late else ""
        log.info(
            "%s is %s%s: %s done, %s failed, %s items",
            run.crawl,
            stats.state,
            late,
            f"{stats.done:,}",
            f"{stats.dead:,}",
            f"{stats.items:,}",
            extra=about(event="run.over", crawl=run.crawl),
        )

    async def _mark_gone(self, run: Run, schedule: Schedule | None, stats: Stats) -> int:
        if stats.rules.previous is None:
            return 0
        try:
            settings = await self._settings(run, schedule)
            async with results_at(settings.results) as results:
                return await mark_gone_items(results, self._frontier, stats)
        except (ConfigError, SeedingFailed) as error:  # shoal.toml or the store has changed.
            log.error("%s: items that are gone were not marked: %s", run.crawl, error)
            return 0

    async def _settings(self, run: Run, schedule: Schedule | None) -> Settings:
        if schedule is None:
            raise ConfigError(f"schedule {run.schedule} is not in {CONFIG_FILE} here")
        try:
            async with asyncio.timeout(LOAD_S):
                return await settings_here(schedule, self._options)
        except TimeoutError:
            raise ConfigError(f"its spider was not loaded within {LOAD_S:g} s") from None
