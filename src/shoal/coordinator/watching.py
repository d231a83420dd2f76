"""The chore of watching runs: is one over, will one be late?"""

from __future__ import annotations

import logging
from typing import Any

import msgspec

from shoal.coordinator.runs import RUNS, Records, Run, read_all, settings_for
from shoal.errors import ConfigError, UnknownCrawl
from shoal.frontier.port import Frontier
from shoal.frontier.values import CrawlState, Stats
from shoal.insight.status import lateness
from shoal.recrawl import mark_gone_items
from shoal.results import results_at

SAY_AGAIN_S = 600.0

log = logging.getLogger("shoal")


class Watching:
    """Watches what is under way."""

    def __init__(self, frontier: Frontier, records: Records, options: dict[str, Any]) -> None:
        self._frontier = frontier
        self._records = records
        self._options = options
        self._said: dict[str, float] = {}

    async def look(self, now: float) -> None:
        """Close what is over, warn of what is late."""
        for run in (await read_all(self._records.notes, RUNS, Run)).values():
            try:
                stats = await self._frontier.stats(run.crawl)
            except UnknownCrawl:
                if run.planted:
                    run.state, run.ended_at, run.is_forgotten = "forgotten", now, True
                    await self._records.close(run)
                continue
            if stats.state is CrawlState.CANCELLED or (stats.state.over and run.planted):
                await self._close(run, stats)
            else:
                self._warn(run, stats, now)

    def _warn(self, run: Run, stats: Stats, now: float) -> None:
        news = lateness(run.deadline, stats, now)
        if news and now - self._said.get(run.crawl, 0.0) >= SAY_AGAIN_S:
            self._said[run.crawl] = now
            log.error("%s is %s", run.crawl, news)

    async def _close(self, run: Run, stats: Stats) -> None:
        gone = await self._mark_gone(run, stats)
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

    async def _mark_gone(self, run: Run, stats: Stats) -> int:
        if stats.rules.previous is None:
            return 0
        try:
            settings = settings_for(run, self._options)
            async with results_at(settings.results) as results:
                return await mark_gone_items(results, stats)
        except ConfigError as error:  # shoal.toml, or the store, was changed meanwhile.
            log.error("%s: items that are gone are not marked: %s", run.crawl, error)
            return 0
