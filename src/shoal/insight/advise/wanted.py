"""Tells autoscalers outside of Shoal how many workers crawls should have: Kubernetes, through KEDA
or from Prometheus.

It decides when it is asked. Only this process knows since when fewer workers have been enough. A
process that takes over starts from the present number of workers, so it releases none too early.
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
"""How long a decision is returned again before the next one is made."""
HOSTS_SEEN = 100
CRAWLS_KEPT = 500
"""How many crawls to remember decisions of. Those asked for longest ago are forgotten first."""


class WantedWorkers:
    """Decides how many workers each crawl of a frontier should have."""

    def __init__(
        self, frontier: QueriesAndNotes, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._frontier = frontier
        self._clock = clock
        self._scalers: OrderedDict[str, Scaler] = OrderedDict()
        self._deciding = asyncio.Lock()

    async def of(self, name: str) -> Staffing:
        """The decision on a crawl, by its name, or on the run of a schedule that is under way, by
        the schedule's name: that stays the same, while each run has another."""
        runs = [run.crawl for run in await under_way(self._frontier.notes) if run.schedule == name]
        return await self._of(max(runs, default=name))

    async def with_workers(self, survey: Survey) -> Survey:
        """A copy of a survey that also tells how many workers each crawl should have."""
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
            # In a thread: with many hosts it takes a while, and would block the event loop.
            return await asyncio.to_thread(scaler.decide, look, staff, self._clock())

    async def _look(self, crawl: str) -> Look | None:
        """Look at a crawl; None if it does not exist. Hosts are skipped unless it is running."""
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
