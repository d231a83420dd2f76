"""What a worker is given when it begins: its name, its crawl, its stores and its resources."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Generic, TypeVar

import msgspec

from shoal.archive.filestore import FileStore
from shoal.archive.port import Archive
from shoal.exits.own import OwnExits
from shoal.frontier.port import Frontier
from shoal.frontier.values import Stats
from shoal.results.port import Results
from shoal.worker.publishing import Publishing
from shoal.worker.visits.own_sessions import OwnSessions

DRAIN_S = 5.0
"""How long requests in flight may take once a worker was told to stop."""

Kept_co = TypeVar("Kept_co", bound=Results | None, covariant=True)


class Stores(msgspec.Struct, Generic[Kept_co], frozen=True):
    """The stores of a crawl. Use `Stores[Results | None]` where results are optional, as with
    Scrapy."""

    frontier: Frontier
    results: Kept_co
    archive: Archive | None = None
    """Where raw pages are kept. None: they are not kept."""
    files: FileStore | None = None
    """Where the files of items are stored. None: there is no place for files."""

    async def close(self) -> None:
        """Close all stores, the file store and the archive first."""
        async with AsyncExitStack() as closing:
            for store in (self.results, self.frontier, self.archive, self.files):
                if store is not None:
                    closing.push_async_callback(store.close)


class Assignment(msgspec.Struct, frozen=True):
    """One worker's part in a crawl."""

    worker: str
    crawl: str
    stores: Stores[Results | None]
    slots: int
    """The most requests that it has in flight."""
    until_finished: bool = True
    """Whether the worker ends with the crawl. Otherwise it waits until the crawl is started
    again."""
    drain_s: float | None = DRAIN_S
    """How long requests in flight may take once the worker was told to stop. None: no limit."""
    exits: OwnExits | None = None
    """Its exits. None: it gets no tasks that need an exit."""
    sessions: OwnSessions | None = None
    """Its accounts. None: it gets no tasks that need an account."""
    publishing: Publishing | None = None
    """Where the crawl's results are published. None: nowhere."""
    on_over: Callable[[Stats], Awaitable[bool]] | None = None
    """Called when the crawl is over. Returns False while work for the end of the crawl is left; it
    is then called again."""
    spider_version: str = ""
    """The version of its spider's code, for its signs of life."""
