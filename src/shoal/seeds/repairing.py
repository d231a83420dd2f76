"""Repairs a crawl whose broker has lost tasks."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.errors import ConfigError
from shoal.frontier.port import Frontier
from shoal.frontier.values import Repaired
from shoal.results.port import Results


async def repair(frontier: Frontier, results: Results, crawl: str) -> Repaired:
    """Write off lost tasks, so that they are found again when the seeds are added again.

    Pages that led to others are visited again too. Of all other pages, the page log tells that they
    are done. Raises ConfigError if pages are done and the results do not know the crawl.
    """

    async def ended(fingerprints: Sequence[bytes]) -> set[bytes]:
        known = await results.known_pages(crawl, fingerprints)
        return {fingerprint for fingerprint, page in known.items() if not page.links}

    async def none_ended(fingerprints: Sequence[bytes]) -> set[bytes]:
        return set()

    if not (await frontier.stats(crawl)).done:  # Perhaps no worker has run yet.
        return await frontier.repair(crawl, none_ended)
    if await results.note_of(crawl) is None:
        raise ConfigError(f"the results know nothing of crawl '{crawl}' (see --results)")
    return await frontier.repair(crawl, ended if results.readable else None)
