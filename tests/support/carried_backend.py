"""The frontier with a window, on any carrier, as a backend of the contract suite."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from shoal.frontier.broker.carrier import Carrier
from shoal.frontier.broker.frontier import OUTSIDE_OR_DONE, CarriedFrontier, Waits
from shoal.frontier.port import Frontier
from shoal.frontier.redis.layout import LAYOUT
from shoal.frontier.redis.windows import Window
from shoal.frontier.values import Entry, Lease, Record
from support.frontiers import CRAWL, Backend, Client
from support.redis_backend import set_layout

SMALLEST = Window(paced=1, fast=1, block=1)
"""A window so small that nearly every task goes through the carrier."""


LOOKS = 100
LOOK_EVERY_S = 0.005


class CarriedClient(Client):
    """Waits for blocks that are on their way, before it leases one task and before it reports that
    a task is outside."""

    async def lease_one(self, limit: int = 1) -> Lease:
        """Hosts whose windows are empty for a moment do not miss their turns."""
        for _ in range(LOOKS):
            if not any(host.dry_s for host in await self.frontier.hosts(self.crawl, LOOKS)):
                break
            await asyncio.sleep(LOOK_EVERY_S)
        return await super().lease_one(limit)

    async def record(self, key: Entry | Lease | Record) -> Record:
        for _ in range(LOOKS):
            record = await super().record(key)
            if record.reason != OUTSIDE_OR_DONE:
                break
            await asyncio.sleep(LOOK_EVERY_S)
        return record


class CarriedBackend(Backend):
    """A frontier on an empty server and an empty carrier."""

    def __init__(self, state: str, make: Callable[[], Carrier], window: Window) -> None:
        self.state, self.make, self.window = state, make, window
        super().__init__()

    def _open(self) -> Frontier:
        return CarriedFrontier(
            self.state,
            self.make(),
            self.window,
            self.clock,
            Waits(ack_s=0.0, fill_s=10.0, publish_s=10.0, enough=1.0),
        )

    async def _set_format(self, number: int | None) -> None:
        await set_layout(self.frontier, CRAWL, number or LAYOUT)

    def client(self, worker: str = "worker", crawl: str = CRAWL) -> Client:
        return CarriedClient(self.frontier, worker, crawl)

    def another(self, worker: str = "another", crawl: str = CRAWL) -> Client:
        return CarriedClient(self.open_another(), worker, crawl)
