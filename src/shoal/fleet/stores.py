"""Opening the stores of a crawl, and closing them: the frontier, the results, the archive."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from shoal.archive import open_archive
from shoal.config import Settings
from shoal.frontier import open_frontier
from shoal.results import open_results
from shoal.results.port import Results
from shoal.worker.assignment import Stores


@asynccontextmanager
async def stores_at(
    settings: Settings, *, archive: bool = True, check: bool = True
) -> AsyncIterator[Stores[Results]]:
    """The stores that the settings name, closed in the end. `check` is for those who begin the
    work: then results or an archive that cannot be used are a ConfigError."""
    stores = open_stores(settings, archive=archive)
    try:
        if check:
            await _check(stores)
        yield stores
    finally:
        await stores.close()


def open_stores(settings: Settings, *, archive: bool) -> Stores[Results]:
    """The stores that the settings name, for somebody who closes them. Nothing is asked of them
    yet."""
    return Stores(
        frontier=open_frontier(settings.frontier, settings.state),
        results=open_results(settings.results),
        archive=(
            open_archive(settings.archive, settings.archive_format)
            if archive and settings.archive is not None
            else None
        ),
    )


async def _check(stores: Stores[Results]) -> None:
    await stores.results.check()
    if stores.archive is not None:
        await stores.archive.check()
