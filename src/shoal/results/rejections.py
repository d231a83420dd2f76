"""Summarises why items of a crawl were rejected."""

from __future__ import annotations

from shoal.core.causes import Cause, Failure, counted_by_cause
from shoal.results.port import Results

LOOKED_AT = 1_000
"""How many rejected items are read for the summary: the first ones."""


async def causes_of_rejection(results: Results, crawl: str) -> list[Cause]:
    """The causes of rejection, most frequent first. Empty if the store is a stream, which cannot be
    read."""
    if not results.readable:
        return []
    found: list[Failure] = []
    async for item in results.rejected(crawl):
        found.append(Failure(f"{item.kind}: {item.reason}", item.reason, item.url))
        if len(found) == LOOKED_AT:
            break
    return counted_by_cause(found)
