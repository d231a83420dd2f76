"""Compares two crawls, or one crawl at two moments, to show what has changed."""

from __future__ import annotations

import msgspec

from shoal.errors import ConfigError, UnknownCrawl
from shoal.insight.moments import shown_moment
from shoal.results.changes import Comparison
from shoal.results.port import Results


class Sides(msgspec.Struct, frozen=True):
    """The two sides of a comparison, as the user named them."""

    first: str
    """The earlier crawl, if there is a second one. If not, the crawl that is compared with its own
    past (`at`), or with the crawl that it follows."""
    second: str | None = None
    at: float | None = None
    """A past moment: the only crawl as it was then is compared with what it is now."""
    kind: str | None = None
    """Only compare items of this kind."""
    ignored: tuple[str, ...] = ()
    """Fields in which items may differ."""


class Compared(msgspec.Struct, frozen=True):
    """A comparison, with names for its sides."""

    earlier: str
    later: str
    items: int | None
    """The number of items on the larger side. None if only one kind is compared."""
    comparison: Comparison


async def compared(results: Results, earlier_results: Results, sides: Sides) -> Compared:
    """Start a comparison. A crawl that is named alone is compared with the crawl that it follows.
    Raises UnknownCrawl, and ConfigError if it follows none."""
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
