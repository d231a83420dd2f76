"""Remembers the recent speeds of crawls, in memory, for charts."""

from __future__ import annotations

from collections import OrderedDict, deque
from itertools import pairwise
from typing import NamedTuple

from shoal.frontier.values import Stats

KEPT_S = 900.0
EVERY_S = 5.0
CRAWLS_KEPT = 300


class Moment(NamedTuple):
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


class Courses:
    """The speeds of the crawls that were looked at in the last quarter of an hour.

    Keeps `CRAWLS_KEPT` crawls, and forgets those that nobody has looked at for longest.
    """

    def __init__(self) -> None:
        self._courses: OrderedDict[str, deque[Moment]] = OrderedDict()

    def note(self, stats: Stats, now: float) -> None:
        """Keep a crawl's counters, unless that was done less than `EVERY_S` ago."""
        course = self._courses.setdefault(stats.crawl, deque(maxlen=int(KEPT_S / EVERY_S)))
        self._courses.move_to_end(stats.crawl)
        while len(self._courses) > CRAWLS_KEPT:
            self._courses.popitem(last=False)
        if course and not 0 <= now - course[-1].at < KEPT_S:
            course.clear()
        if course and now - course[-1].at < EVERY_S:
            return
        moment = Moment(now, stats.tried, stats.retries + stats.dead, stats.remaining)
        if course and moment.tried < course[-1].tried:  # Started over, or dead tasks are retried.
            course.clear()
        course.append(moment)

    def of(self, crawl: str, since: float = 0.0) -> list[Speed]:
        """The speeds of a crawl between the kept samples, oldest first."""
        course = self._courses.get(crawl, ())
        return [
            Speed(
                after.at,
                (after.tried - before.tried) / (after.at - before.at),
                max(after.failures - before.failures, 0) / (after.at - before.at),
                after.queue,
            )
            for before, after in pairwise(course)
            if after.at > since
        ]
