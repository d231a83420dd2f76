"""How long something took, in few fixed classes: those of many workers can be added up."""

from __future__ import annotations

from bisect import bisect_left

import msgspec

BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""The upper bounds of the classes, each inclusive. One more class has what took longer."""


class Histogram(msgspec.Struct):
    """How many took how long."""

    total_s: float = 0.0
    """All of them together."""
    counts: list[int] = msgspec.field(default_factory=lambda: [0] * (len(BOUNDS_S) + 1))
    """By class, in the order of `BOUNDS_S`. Not cumulative."""

    def note(self, seconds: float) -> None:
        """Count one more."""
        self.total_s += seconds
        self.counts[bisect_left(BOUNDS_S, seconds)] += 1

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(self.counts)
