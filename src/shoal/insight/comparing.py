"""Which two states are compared when somebody asks what has changed: two crawls, or one at two
moments."""

from __future__ import annotations

import msgspec

from shoal.errors import ConfigError, UnknownCrawl
from shoal.insight.moments import shown_moment
from shoal.results.changes import Comparison
from shoal.results.port import Results


class Sides(msgspec.Struct, frozen=True):
    """What is to be compared."""

    first: str
    """The earlier crawl; the only one if no other is named."""
    second: str | None = None
    at: float | None = None
    """The moment at which the only one is looked at, to be compared with what it is now."""
    kind: str | None = None
    ignored: tuple[str, ...] = ()
    """Fields that may differ."""


class Compared(msgspec.Struct, frozen=True):
    """Two sides that are being compared, as they are called."""

    earlier: str
    later: str
    items: int | None
    """The most that either side has, if that is known."""
    comparison: Comparison


async def compared(results: Results, earlier_results: Results, sides: Sides) -> Compared:
    """The comparison that is asked for. Raises UnknownCrawl, and ConfigError if a crawl that is
    named alone has nothing to be compared with."""
    later = sides.second or sides.first
    after = await _items(results, later)
    earlier = later if sides.at is not None else await _earlier(results, sides)
    before = after if sides.at is not None else await _items(earlier_results, earlier)
    comparison = Comparison(
        earlier_results.items_by_key(earlier, sides.kind, sides.at),
        results.items_by_key(later, sides.kind),
        sides.ignored,
    )
    if sides.at is not None:
        earlier = f"{earlier} at {shown_moment(sides.at)}"
    return Compared(earlier, later, max(before, after) if sides.kind is None else None, comparison)


async def _earlier(results: Results, sides: Sides) -> str:
    if sides.second is not None:
        return sides.first
    note = await results.note_of(sides.first)
    if note is None or not note.previous:
        raise ConfigError(
            f"compare '{sides.first}' with what? it follows on no other crawl: name two, or say"
            " --since"
        )
    return note.previous


async def _items(results: Results, crawl: str) -> int:
    counts = await results.count(crawl)
    if not counts and await results.note_of(crawl) is None:
        raise UnknownCrawl(crawl)
    return sum(counts.values())
