"""Counts durations in a few fixed classes, so that the counts of many workers can be added up."""

from __future__ import annotations

from bisect import bisect_left

import msgspec

BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""The upper bounds of the classes, each inclusive. One more class counts what took longer."""


class Histogram(msgspec.Struct):
    """How often something took how long."""

    total_s: float = 0.0
    """The sum of all durations."""
    counts: list[int] = msgspec.field(default_factory=lambda: [0] * (len(BOUNDS_S) + 1))
    """The counts by class, in the order of `BOUNDS_S`. Not cumulative."""

    def note(self, seconds: float) -> None:
        """Count one duration."""
        self.total_s += seconds
        self.counts[bisect_left(BOUNDS_S, seconds)] += 1

    @property
    def count(self) -> int:
        """The number of durations counted."""
        return sum(self.counts)
