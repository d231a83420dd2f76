"""How many workers crawls should have, for those who start them elsewhere: Kubernetes, by KEDA or
from Prometheus.

Since when fewer are enough is known to this process alone. One that takes over begins with those
that there are, and so lets go of none before its time. It decides when somebody asks.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable

import msgspec

from shoal.coordinator.runs import under_way
from shoal.errors import UnknownCrawl
from shoal.frontier.port import QueriesAndNotes
from shoal.frontier.values import CrawlState
from shoal.insight.advise.look import look_at
from shoal.insight.advise.scaler import Scaler
from shoal.insight.advise.scaling import Bounds, Staff, Staffing
from shoal.insight.advise.situation import Look
from shoal.insight.sample import Survey

FRESH_S = 5.0
HOSTS_SEEN = 100
CRAWLS_KEPT = 500


class WantedWorkers:
    """The workers that the crawls of a frontier should have."""

    def __init__(
        self, frontier: QueriesAndNotes, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._frontier = frontier
        self._clock = clock
        self._scalers: OrderedDict[str, Scaler] = OrderedDict()
        self._deciding = asyncio.Lock()

    async def of(self, name: str) -> Staffing:
        """Those of a crawl, or of a schedule's run that is under way: runs have other names each
        time."""
        runs = [run.crawl for run in await under_way(self._frontier.notes) if run.schedule == name]
        return await self._of(max(runs, default=name))

    async def with_workers(self, survey: Survey) -> Survey:
        """The same look at all crawls, and how many workers each should have."""
        samples = [
            msgspec.structs.replace(sample, wanted=(await self._of(sample.crawl)).workers)
            for sample in survey.samples
        ]
        return msgspec.structs.replace(survey, samples=samples)

    async def _of(self, crawl: str) -> Staffing:
        scaler = self._scaler(crawl)
        async with self._deciding:
            known = scaler.staffing
            if known is not None and self._clock() - known.looked_at < FRESH_S:
                return known
            look = await self._look(crawl)
            staff = Staff(alive=len(look.workers) if look is not None else 0)
            # With many hosts it takes a while: others are not to wait for it.
            return await asyncio.to_thread(scaler.decide, look, staff, self._clock())

    async def _look(self, crawl: str) -> Look | None:
        """What there is to see. Of a crawl that does not run, its hosts are of no interest."""
        try:
            stats = await self._frontier.stats(crawl)
            if stats.state is CrawlState.RUNNING:
                return await look_at(self._frontier, crawl, time.time(), HOSTS_SEEN)
            return Look(at=time.time(), stats=stats, workers=await self._frontier.workers(crawl))
        except UnknownCrawl:
            return None

    def _scaler(self, crawl: str) -> Scaler:
        scaler = self._scalers.setdefault(crawl, Scaler(Bounds()))
        self._scalers.move_to_end(crawl)
        if len(self._scalers) > CRAWLS_KEPT:
            self._scalers.popitem(last=False)
        return scaler
