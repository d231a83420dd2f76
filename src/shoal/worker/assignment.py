"""What a worker is told when it begins: who it is, on which crawl it works, and with what."""

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
    """The stores of a crawl. `Stores[Results | None]` are those of somebody who can do without
    results, as Scrapy can."""

    frontier: Frontier
    results: Kept_co
    archive: Archive | None = None
    """None where raw pages are not kept."""
    files: FileStore | None = None
    """Where files of items go. None: there is no place for any."""

    async def close(self) -> None:
        """Close all of them, the archive first."""
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
    """Requests it has in flight at most."""
    until_finished: bool = True
    """Whether it ends with the crawl. Else it waits until somebody starts the crawl again."""
    drain_s: float | None = DRAIN_S
    """How long requests in flight may take once it was told to stop. None: as long as they like."""
    exits: OwnExits | None = None
    """Its ways out. None: it gets no tasks that need one."""
    sessions: OwnSessions | None = None
    """Its accounts. None: it gets no tasks that need one."""
    publishing: Publishing | None = None
    """Where it tells others what the crawl gives. None: nowhere."""
    on_over: Callable[[Stats], Awaitable[bool]] | None = None
    """Asked when the crawl is over. False: what is to be done then is not done yet; ask again."""
    spider_version: str = ""
    """What it tells others of its spider's code."""
