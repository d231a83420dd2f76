"""Evaluates a site's own log: which workers sent requests, when, and how many at once. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from benchmarks.slow_server import Hit


class Level(NamedTuple):
    """The number of requests in flight from one time on."""

    at: float
    in_flight: int


def levels(hits: Sequence[Hit]) -> Iterator[Level]:
    """The number of requests in flight, each time that it changes. If one request comes at the very
    time at which another is answered, both count as in flight."""
    changes = sorted([(hit.came, -1) for hit in hits] + [(hit.answered, 1) for hit in hits])
    in_flight = 0
    for at, change in changes:
        in_flight -= change
        yield Level(at, in_flight)


def most_at_once(hits: Sequence[Hit]) -> int:
    """The highest number of requests in flight."""
    return max((level.in_flight for level in levels(hits)), default=0)


def of(hits: Sequence[Hit], agents: Collection[str]) -> list[Hit]:
    """The requests of some user agents."""
    return [hit for hit in hits if hit.agent in agents]


def parts(hits: Sequence[Hit], agents: Collection[str]) -> list[float]:
    """How many requests each user agent has sent, relative to an even share."""
    sent = Counter(hit.agent for hit in hits)
    return [sent[agent] * len(agents) / len(hits) for agent in agents]


def until_there_are(count: int, hits: Sequence[Hit], since: float) -> float | None:
    """How long after `since` at least `count` requests were in flight. None: never."""
    for level in levels(hits):
        if level.at >= since and level.in_flight >= count:
            return level.at - since
    return None


def span_s(hits: Sequence[Hit]) -> float:
    """The time from the first request to the last answer."""
    return max(hit.answered for hit in hits) - min(hit.came for hit in hits)
