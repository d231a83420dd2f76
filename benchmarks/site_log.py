"""What a site's own log says: who was there, how many at once, and when. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from benchmarks.slow_server import Hit


class Level(NamedTuple):
    """So many requests are in flight from this moment on."""

    at: float
    in_flight: int


def levels(hits: Sequence[Hit]) -> Iterator[Level]:
    """How many are in flight, at every moment when that changes. Who is answered in the moment in
    which another comes was there beside it: in doubt it is more."""
    changes = sorted([(hit.came, -1) for hit in hits] + [(hit.answered, 1) for hit in hits])
    in_flight = 0
    for at, change in changes:
        in_flight -= change
        yield Level(at, in_flight)


def most_at_once(hits: Sequence[Hit]) -> int:
    """Requests in flight, at the worst."""
    return max((level.in_flight for level in levels(hits)), default=0)


def of(hits: Sequence[Hit], agents: Collection[str]) -> list[Hit]:
    """What some of them have sent."""
    return [hit for hit in hits if hit.agent in agents]


def parts(hits: Sequence[Hit], agents: Collection[str]) -> list[float]:
    """How much each has sent, as times what would be its even part."""
    sent = Counter(hit.agent for hit in hits)
    return [sent[agent] * len(agents) / len(hits) for agent in agents]


def until_there_are(count: int, hits: Sequence[Hit], since: float) -> float | None:
    """How long from a moment on until so many were in flight at once. None: never."""
    for level in levels(hits):
        if level.at >= since and level.in_flight >= count:
            return level.at - since
    return None


def span_s(hits: Sequence[Hit]) -> float:
    """From the first request to the last answer."""
    return max(hit.answered for hit in hits) - min(hit.came for hit in hits)
