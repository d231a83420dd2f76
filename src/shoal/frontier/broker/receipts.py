"""Keeps the receipts of blocks that were admitted and are not acknowledged yet.

A Redis server that is restarted may lose its last second. A block that was acknowledged in that
second would be lost by both Redis and the carrier. So a block is acknowledged only some seconds
later, and only if the server was not restarted meanwhile. If it was, the block is admitted again.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from shoal.frontier.broker.carrier import Delivery

ACK_AFTER_S = 5.0
"""Redis syncs its file once a second, which may take another second or more."""


class _Kept(NamedTuple):
    due: float
    life: str
    delivery: Delivery


class Receipts:
    """Receipts in the order in which they are due."""

    def __init__(
        self, ack_after_s: float = ACK_AFTER_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._after_s = ack_after_s
        self._clock = clock
        self._kept: deque[_Kept] = deque()

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, life: str, deliveries: Sequence[Delivery]) -> None:
        """Add blocks that were admitted in this life of the server."""
        due = self._clock() + self._after_s
        self._kept.extend(_Kept(due, life, delivery) for delivery in deliveries)

    @property
    def due_in_s(self) -> float | None:
        """In how many seconds the first is due. None if there are none."""
        return max(self._kept[0].due - self._clock(), 0.0) if self._kept else None

    @property
    def now(self) -> float:
        """The current time by this clock, for `take_due`."""
        return self._clock()

    def take_due(self, life: str, at: float) -> tuple[list[Delivery], list[Delivery]]:
        """Remove and return the deliveries that were due at `at`: those that can be acknowledged,
        and those that must be admitted again.

        At `at` or later the server answered that it is in this `life`. What was admitted in another
        life may be lost. What became due after `at` stays: the server may have been restarted since
        that answer.
        """
        safe, unsafe = list[Delivery](), list[Delivery]()
        while self._kept and self._kept[0].due <= at:
            kept = self._kept.popleft()
            (safe if kept.life == life else unsafe).append(kept.delivery)
        return safe, unsafe

    def put_back(self, life: str, deliveries: Sequence[Delivery]) -> None:
        """Put back deliveries that could not be acknowledged. They are due at once."""
        self._kept.extendleft(_Kept(0.0, life, delivery) for delivery in reversed(deliveries))
