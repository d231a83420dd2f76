"""Having tasks found again that a broker has lost."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.errors import ConfigError
from shoal.frontier.port import Frontier
from shoal.frontier.values import Repaired
from shoal.results.port import Results


async def repair(frontier: Frontier, results: Results, crawl: str) -> Repaired:
    """Write off what is lost. It is found again when its seeds are brought again, and with it all
    pages that led to others; of the rest the page log says that it is done."""

    async def ended(fingerprints: Sequence[bytes]) -> set[bytes]:
        known = await results.known_pages(crawl, fingerprints)
        return {fingerprint for fingerprint, page in known.items() if not page.links}

    if await results.note_of(crawl) is None:
        raise ConfigError(f"the results know nothing of crawl '{crawl}' (see --results)")
    return await frontier.repair(crawl, ended if results.readable else None)
