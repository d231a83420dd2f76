"""Tells a crawl that has given nothing from one that does not exist."""

from __future__ import annotations

from typing import Any

from shoal.cli.options import existing_stores
from shoal.frontier import frontier_at
from shoal.results.port import Results


async def must_be_known(results: Results, crawl: str, options: dict[str, Any]) -> None:
    """Raises UnknownCrawl if neither results nor frontier know the crawl. The frontier is asked
    only if the results do not."""
    if await results.count(crawl) or await results.note_of(crawl) is not None:
        return
    stores = existing_stores(options)
    async with frontier_at(stores.frontier, stores.state) as frontier:
        await frontier.stats(crawl)
