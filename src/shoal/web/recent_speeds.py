"""Remembers the recent speeds of crawls, in memory, for charts."""

from __future__ import annotations

from collections import OrderedDict, deque
from itertools import pairwise
from typing import NamedTuple

from shoal.frontier.values import Stats

KEPT_S = 900.0
EVERY_S = 5.0
CRAWLS_KEPT = 300


class CounterSample(NamedTuple):
    """A crawl's counters at one time."""

    at: float
    tried: int
    failures: int
    queue: int


class Speed(NamedTuple):
    """What charts show of a crawl at one time."""

    at: float
    pages_per_s: float
    failures_per_s: float
    queue: float


class RecentSpeeds:
    """The speeds of the crawls that were looked at in the last quarter of an hour.

    Keeps `CRAWLS_KEPT` crawls, and forgets those that nobody has looked at for longest.
    """

    def __init__(self) -> None:
        self._samples: OrderedDict[str, deque[CounterSample]] = OrderedDict()

    def note(self, stats: Stats, now: float) -> None:
        """Keep a crawl's counters, unless that was done less than `EVERY_S` ago."""
        samples = self._samples.setdefault(stats.crawl, deque(maxlen=int(KEPT_S / EVERY_S)))
        self._samples.move_to_end(stats.crawl)
        while len(self._samples) > CRAWLS_KEPT:
            self._samples.popitem(last=False)
        if samples and not 0 <= now - samples[-1].at < KEPT_S:
            samples.clear()
        if samples and now - samples[-1].at < EVERY_S:
            return
        sample = CounterSample(now, stats.tried, stats.retries + stats.dead, stats.remaining)
        if samples and sample.tried < samples[-1].tried:  # Started over, or dead tasks are retried.
            samples.clear()
        samples.append(sample)

    def of(self, crawl: str, since: float = 0.0) -> list[Speed]:
        """The speeds of a crawl between the kept samples, oldest first."""
        samples = self._samples.get(crawl, ())
        return [
            Speed(
                after.at,
                (after.tried - before.tried) / (after.at - before.at),
                max(after.failures - before.failures, 0) / (after.at - before.at),
                after.queue,
            )
            for before, after in pairwise(samples)
            if after.at > since
        ]
