"""Renews the leases of tasks that a worker still has in hand."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial

from shoal.errors import UnknownCrawl
from shoal.frontier.values import Lease
from shoal.runtime.patience import patiently
from shoal.worker.assignment import Assignment
from shoal.worker.leasing import Leasing


class Renewals:
    """Renews a worker's leases, and gives back those that have waited too long for a slot."""

    def __init__(
        self,
        assignment: Assignment,
        leasing: Leasing,
        *,
        on_lost: Callable[[list[Lease]], None],
        give_back: Callable[[list[Lease]], None],
    ) -> None:
        self._crawl = assignment.crawl
        self._frontier = assignment.stores.frontier
        self._leasing = leasing
        self._on_lost = on_lost
        self._give_back = give_back

    async def run(self, lease_s: float) -> None:
        """Renew leases that last `lease_s` seconds, until cancelled."""
        while True:
            await asyncio.sleep(lease_s / 3)
            self._give_back(self._leasing.give_back_stuck(time.monotonic()))
            if held := list(self._leasing.held.values()):
                await patiently("frontier", partial(self._renew, held))

    async def _renew(self, held: list[Lease]) -> None:
        try:
            lost = await self._frontier.renew(self._crawl, held)
        except UnknownCrawl:
            lost = held
        if lost:
            self._on_lost(lost)
            # Leases given back now are the next to be leased again.
            self._give_back(self._leasing.give_back_ready())
