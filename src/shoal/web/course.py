"""How crawls have gone lately, as those saw it who looked: for charts, in memory."""

from __future__ import annotations

from collections import OrderedDict, deque
from itertools import pairwise
from typing import NamedTuple

from shoal.frontier.values import Stats

KEPT_S = 900.0
EVERY_S = 5.0
CRAWLS_KEPT = 300


class Moment(NamedTuple):
    """A crawl's counters at a moment."""

    at: float
    tried: int
    failures: int
    queue: int


class Speed(NamedTuple):
    """What a chart shows of a moment."""

    at: float
    pages_per_s: float
    failures_per_s: float
    queue: float


class Courses:
    """The last quarter of an hour of some crawls. Bounded: those nobody looks at are forgotten."""

    def __init__(self) -> None:
        self._courses: OrderedDict[str, deque[Moment]] = OrderedDict()

    def note(self, stats: Stats, now: float) -> None:
        """Keep how a crawl stands, unless that was done a moment ago."""
        course = self._courses.setdefault(stats.crawl, deque(maxlen=int(KEPT_S / EVERY_S)))
        self._courses.move_to_end(stats.crawl)
        while len(self._courses) > CRAWLS_KEPT:
            self._courses.popitem(last=False)
        if course and not 0 <= now - course[-1].at < KEPT_S:
            course.clear()
        if course and now - course[-1].at < EVERY_S:
            return
        moment = Moment(now, stats.tried, stats.retries + stats.dead, stats.remaining)
        if course and moment.tried < course[-1].tried:  # Started over, or dead ones are retried.
            course.clear()
        course.append(moment)

    def of(self, crawl: str, since: float = 0.0) -> list[Speed]:
        """The speeds of a crawl between the moments that are kept."""
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
