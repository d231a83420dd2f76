"""Opens and closes the stores of a crawl: the frontier, the results, the archive, the files."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import quote

from shoal.archive import open_archive, open_files
from shoal.config import Settings
from shoal.drivers.sqlite import path_of
from shoal.errors import StorageBusy
from shoal.frontier import open_frontier
from shoal.frontier.port import Frontier
from shoal.results import open_results
from shoal.results.port import Results
from shoal.worker.assignment import Stores

FOLDER = "shoal-files"
"""The folder for files if no store is set. It is created with the first file."""


@asynccontextmanager
async def stores_at(
    settings: Settings, *, archive: bool = True, check: bool = True
) -> AsyncIterator[Stores[Results]]:
    """Open the stores that the settings name, and close them at the end.

    `check` is for callers that begin the work: it raises ConfigError if the results, the files or
    the archive cannot be used.
    """
    stores = open_stores(settings, archive=archive)
    try:
        if check:
            await _check(stores, settings)
        yield stores
    finally:
        await stores.close()


async def check_frontier(frontier: Frontier) -> None:
    """Look whether those who work at a frontier are let in, also by its broker. What is away is no
    reason not to begin: they wait for it, and machines start in any order. Raises ConfigError."""
    with suppress(StorageBusy):
        await frontier.check()


def open_stores(settings: Settings, *, archive: bool) -> Stores[Results]:
    """Open the stores that the settings name; the caller closes them. They are not contacted
    yet."""
    return Stores(
        frontier=open_frontier(settings.frontier, settings.state),
        results=open_results(settings.results),
        archive=(
            open_archive(settings.archive, settings.archive_format)
            if archive and settings.archive is not None
            else None
        ),
        files=open_files(files) if archive and (files := file_store_of(settings)) else None,
    )


def file_store_of(settings: Settings) -> str:
    """The address where files of items go: the store that is set, else the archive, else a folder
    beside the results if these are in SQLite. Empty if there is none of these."""
    if address := settings.file_store or settings.archive:
        return address
    if settings.results.partition(":")[0] != "sqlite":
        return ""
    return f"file:{quote(str(path_of(settings.results).absolute().parent / FOLDER))}"


async def _check(stores: Stores[Results], settings: Settings) -> None:
    await stores.results.check()
    if stores.files is not None and settings.file_store:
        await stores.files.check()
    if stores.archive is not None:
        await stores.archive.check()
