"""Blocks that have come in, and are not acknowledged yet.

A server that is set back loses its last second. Were a block acknowledged at once, it would be gone
from both. So it is kept for longer than that, and acknowledged only if the server has not been
restarted meanwhile; if it was, the block is brought in once more.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from shoal.frontier.broker.carrier import Delivery

ACK_AFTER_S = 5.0
"""Redis writes its file once a second, and may be late by one more."""


class _Kept(NamedTuple):
    due: float
    life: str
    delivery: Delivery


class Receipts:
    """In the order in which they came."""

    def __init__(
        self, ack_after_s: float = ACK_AFTER_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._after_s = ack_after_s
        self._clock = clock
        self._kept: deque[_Kept] = deque()

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, life: str, deliveries: Sequence[Delivery]) -> None:
        """Blocks were brought in, in this life of the server."""
        due = self._clock() + self._after_s
        self._kept.extend(_Kept(due, life, delivery) for delivery in deliveries)

    @property
    def due_in_s(self) -> float | None:
        """When the first is due. None if there is none."""
        return max(self._kept[0].due - self._clock(), 0.0) if self._kept else None

    @property
    def now(self) -> float:
        """The moment, for `take_due`."""
        return self._clock()

    def take_due(self, life: str, at: float) -> tuple[list[Delivery], list[Delivery]]:
        """Those that were due when the server was last asked, at this moment or later: what can be
        acknowledged, and what is of an earlier life. What has become due since may be lost: the
        server may have been restarted meanwhile."""
        safe, unsafe = list[Delivery](), list[Delivery]()
        while self._kept and self._kept[0].due <= at:
            kept = self._kept.popleft()
            (safe if kept.life == life else unsafe).append(kept.delivery)
        return safe, unsafe

    def put_back(self, life: str, deliveries: Sequence[Delivery]) -> None:
        """These could not be acknowledged: they are due at once."""
        self._kept.extendleft(_Kept(0.0, life, delivery) for delivery in reversed(deliveries))
