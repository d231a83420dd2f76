"""Keeps the course of each crawl, a point for each minute of the last day, for charts and alerts.

The leader stores points as notes, so that they outlive every process. Each hour of a crawl has a
note. The 25 notes of a crawl are used in turn, so it never has more, however long it takes.

    points          CRAWL -> CrawlWithPoints  crawls that have points
    points/CRAWL    HOUR -> Hour              the hour modulo 25, with its points
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from typing import Annotated

import msgspec
from msgspec import Meta

from shoal.coordinator.runs import LeaderNotes, Moment
from shoal.errors import ConfigError
from shoal.frontier.board import Notes, read_all
from shoal.insight.sample import Sample

POINTS = "points"
MINUTE_S = 60.0
HOUR_S = 3600.0
HOURS_KEPT = 25
"""The last 24 hours touch 25 hours of the clock."""
SPANS_S = {"15m": 900.0, "1h": HOUR_S, "24h": 24 * HOUR_S}
"""The spans of time that a chart can show."""
POINTS_CACHED = 121
"""How many points per crawl a leader has in memory: two hours, for the conditions of alerts."""

Count = Annotated[int, Meta(ge=0)]


class Point(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """A crawl's counters at one look, one per minute. Stored as an array, so new fields must be
    added at the end and have a default."""

    at: Moment
    added: Count
    remaining: Count
    done: Count
    dead: Count
    retries: Count
    sent: Count
    blocked: Count
    duplicates: Count
    items: Count
    workers: Count
    eta_s: Annotated[float, Meta(ge=0)] | None = None

    @property
    def tried(self) -> int:
        """Tasks that are done or dead."""
        return self.done + self.dead

    @property
    def failed_tries(self) -> int:
        """Tries that failed."""
        return self.retries + self.dead


class Hour(msgspec.Struct):
    """The points of an hour."""

    points: Annotated[list[Point], Meta(max_length=61)]


class CrawlWithPoints(msgspec.Struct):
    """A crawl that has points."""

    last: Moment


class ChartPoint(msgspec.Struct, frozen=True):
    """What a chart shows for one minute."""

    at: float
    pages_per_s: float
    failures_per_s: float
    queue: int
    workers: int


def point_of(sample: Sample) -> Point:
    """The point to keep of a sample."""
    stats = sample.stats
    return Point(
        at=sample.at,
        added=stats.added,
        remaining=stats.remaining,
        done=stats.done,
        dead=stats.dead,
        retries=stats.retries,
        sent=stats.sent,
        blocked=stats.blocked,
        duplicates=stats.duplicates,
        items=stats.items,
        workers=len(sample.workers),
        eta_s=sample.eta_s,
    )


def of_newest_crawl(points: Iterable[Point]) -> list[Point]:
    """The points in order, without those of an earlier crawl of the same name. These are told by
    `added`, which never goes down within a crawl."""
    ordered: list[Point] = []
    for point in sorted(points, key=lambda point: point.at):
        if ordered and point.added < ordered[-1].added:
            ordered.clear()
        ordered.append(point)
    return ordered


def chart(points: Sequence[Point]) -> list[ChartPoint]:
    """Convert points for a chart: each gets the speed since the one before it."""
    return [
        ChartPoint(
            at=now.at,
            pages_per_s=_per_second(now.tried - before.tried, before, now),
            failures_per_s=_per_second(now.failed_tries - before.failed_tries, before, now),
            queue=now.remaining,
            workers=now.workers,
        )
        for before, now in pairwise(points)
        if now.at > before.at
    ]


def _per_second(count: int, before: Point, now: Point) -> float:
    return max(count, 0) / (now.at - before.at)  # A retry of dead tasks lowers their count.


async def history(notes: Notes, crawl: str, span: str, now: float) -> list[ChartPoint]:
    """The chart of a crawl's last `15m`, `1h` or `24h`, the oldest point first. Raises ConfigError
    for another span."""
    if span not in SPANS_S:
        raise ConfigError(f"span: {span!r} is none of {', '.join(SPANS_S)}")
    # One more: the first point's speed is the one since the point before it.
    return chart(await points_since(notes, crawl, now - SPANS_S[span] - MINUTE_S, now))


async def points_since(notes: Notes, crawl: str, since: float, now: float) -> list[Point]:
    """The stored points of a crawl from a moment on. Points from the future, which a clock that was
    ahead has stored, are left out."""
    hours = (await read_all(notes, _topic(crawl), Hour)).values()
    kept = (point for hour in hours for point in hour.points)
    return of_newest_crawl(point for point in kept if since <= point.at <= now + MINUTE_S)


class PointKeeper:
    """Keeps a point for each minute of the crawls that a leader looks at."""

    def __init__(self, leader_notes: LeaderNotes) -> None:
        self._leader_notes = leader_notes
        self._points: dict[str, list[Point]] = {}

    async def keep(self, sample: Sample) -> list[Point]:
        """Store a point of this sample, unless its minute has one already. Returns the points of
        the last two hours, with this sample as the last one."""
        crawl, now = sample.crawl, sample.at
        if crawl not in self._points:
            since = now - POINTS_CACHED * MINUTE_S
            self._points[crawl] = await points_since(self._leader_notes.notes, crawl, since, now)
        points, point = self._points[crawl], point_of(sample)
        if points and _minute(points[-1]) == _minute(point):
            return of_newest_crawl([*points, point])
        points = of_newest_crawl([*points, point])[-POINTS_CACHED:]
        hour = [other for other in points if _hour(other) == _hour(point)][-60:]
        await self._leader_notes.write(_topic(crawl), _place(point), Hour(hour))
        await self._leader_notes.write(POINTS, crawl, CrawlWithPoints(now))
        self._points[crawl] = points
        return points

    def uncache_all_but(self, crawls: Collection[str]) -> None:
        """Remove the points of other crawls from memory. The stored points stay."""
        self._points = {crawl: self._points[crawl] for crawl in self._points if crawl in crawls}

    async def forget_all_but(self, crawls: set[str]) -> None:
        """Delete the stored points of crawls that do not exist any more."""
        for crawl in await self._leader_notes.notes.all(POINTS):
            if crawl in crawls:
                continue
            for hour in range(HOURS_KEPT):
                await self._leader_notes.write(_topic(crawl), _name(hour), None)
            await self._leader_notes.write(POINTS, crawl, None)


def _topic(crawl: str) -> str:
    return f"{POINTS}/{crawl}"


def _minute(point: Point) -> int:
    return int(point.at // MINUTE_S)


def _hour(point: Point) -> int:
    return int(point.at // HOUR_S)


def _place(point: Point) -> str:
    return _name(_hour(point) % HOURS_KEPT)


def _name(hour: int) -> str:
    return f"{hour:02}"
