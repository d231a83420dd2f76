"""A carrier whose calls take turns. On RabbitMQ an error of one call ends the channel that another
may be using, and chores, those who bring work and those who cancel all use it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from shoal.frontier.broker.carrier import Block, Carrier, Delivery


class InTurns(Carrier):
    """The same carrier, one call at a time."""

    def __init__(self, carrier: Carrier) -> None:
        self._carrier = carrier
        self._turn = asyncio.Lock()

    @property
    def most_bytes(self) -> int:
        return self._carrier.most_bytes

    @property
    def kept_s(self) -> float | None:
        return self._carrier.kept_s

    async def declare(self, lane: str) -> None:
        async with self._turn:
            await self._carrier.declare(lane)

    async def publish(self, blocks: Sequence[Block]) -> None:
        async with self._turn:
            await self._carrier.publish(blocks)

    async def fetch(self, lane: str, limit: int) -> list[Delivery]:
        async with self._turn:
            return await self._carrier.fetch(lane, limit)

    async def ack(self, receipts: Sequence[object]) -> None:
        async with self._turn:
            await self._carrier.ack(receipts)

    async def count(self, lane: str) -> int:
        async with self._turn:
            return await self._carrier.count(lane)

    async def drop(self, lane: str) -> None:
        async with self._turn:
            await self._carrier.drop(lane)

    async def close(self) -> None:
        await self._carrier.close()
