"""A carrier in memory that can fail as brokers do: it can be unavailable, deliver twice, and not
confirm what it has stored."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from shoal.errors import StorageBusy
from shoal.frontier.broker.carrier import Block, Carrier, Delivery

AWAY = "memory: the broker is away"


class Store:
    """The broker's data. Several carriers may be connected to it."""

    def __init__(self) -> None:
        self.lanes: dict[str, deque[Block]] = {}
        self.held: dict[int, tuple[MemoryCarrier, Block]] = {}
        self.number = 0
        self.is_away = False
        self.loses_confirms = False
        """Whether blocks are stored without a confirmation for the publisher."""

    @property
    def blocks(self) -> list[Block]:
        """The waiting blocks of all lanes."""
        return [block for lane in self.lanes.values() for block in lane]

    def let_go(self, carrier: MemoryCarrier) -> None:
        """Return the blocks of a closed connection to the front of their lanes."""
        for receipt, (holder, block) in reversed(list(self.held.items())):
            if holder is carrier:
                del self.held[receipt]
                self.lanes.setdefault(block.lane, deque()).appendleft(block)


class MemoryCarrier(Carrier):
    """One connection to a store."""

    def __init__(self, store: Store, name: str = "memory") -> None:
        self.store = store
        self._name = name
        self.keeps_s: float | None = None

    @property
    def name(self) -> str:
        return self._name

    @property
    def kept_s(self) -> float | None:
        return self.keeps_s

    @property
    def most_bytes(self) -> int:
        return 48 * 1024

    def _check(self) -> None:
        if self.store.is_away:
            raise StorageBusy(AWAY)

    async def declare(self, lane: str) -> None:
        self._check()
        self.store.lanes.setdefault(lane, deque())

    async def publish(self, blocks: Sequence[Block]) -> None:
        self._check()
        for block in blocks:
            self.store.lanes.setdefault(block.lane, deque()).append(block)
        if self.store.loses_confirms:
            raise StorageBusy("memory: no confirm")

    async def fetch(self, lane: str, limit: int) -> list[Delivery]:
        self._check()
        found = list[Delivery]()
        waiting = self.store.lanes.get(lane, deque())
        while waiting and len(found) < limit:
            block = waiting.popleft()
            self.store.number += 1
            self.store.held[self.store.number] = (self, block)
            found.append(Delivery(block, self.store.number))
        return found

    async def ack(self, receipts: Sequence[object]) -> None:
        self._check()
        for receipt in receipts:
            assert isinstance(receipt, int)
            self.store.held.pop(receipt, None)

    async def count(self, lane: str) -> int:
        self._check()
        return len(self.store.lanes.get(lane, ()))

    async def drop(self, lane: str) -> None:
        self._check()
        self.store.lanes.pop(lane, None)

    async def close(self) -> None:
        self.store.let_go(self)
