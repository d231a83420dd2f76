"""Tells a crawl that has given nothing from one that does not exist."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.cli.options import existing_stores
from shoal.frontier import frontier_at
from shoal.results.port import RunNote


async def must_be_known(
    crawl: str, counts: Mapping[str, int], note: RunNote | None, options: dict[str, Any]
) -> None:
    """Raises UnknownCrawl if the frontier does not know the crawl, and neither do the results:
    `counts` and `note` are what they have of it. The frontier is asked only if that is nothing."""
    if counts or note is not None:
        return
    stores = existing_stores(options)
    async with frontier_at(stores.frontier, stores.state) as frontier:
        await frontier.stats(crawl)
