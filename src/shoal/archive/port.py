"""The archive port: raw pages are stored before their task is finished, and `shoal reparse` reads
them again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence

import msgspec

from shoal.core.task import Task
from shoal.errors import StorageFailed

OnUnreadable = Callable[[StorageFailed], object]


class RawPage(msgspec.Struct, kw_only=True):
    """One answer of a site, with everything needed to parse it again."""

    task: Task
    fingerprint: bytes
    status: int
    headers: list[tuple[str, str]]
    """The headers as received; the body, however, is no longer compressed as they may say. Bytes
    that are not UTF-8 are kept as surrogate escapes."""
    fetched_at: float
    """When the page was complete. The items found on it have this time."""
    body: bytes
    digest: bytes
    """The digest of the body: see `shoal.core.content`."""
    identity: str = ""
    """The account that the page was fetched with: `shop#alice`."""


class Archive(ABC):
    """A store of raw pages. Errors are StorageBusy and StorageFailed, as in the results store, and
    ConfigError for a wrong setup."""

    @abstractmethod
    async def check(self) -> None:
        """Check that pages can be stored here. Raises ConfigError."""

    @abstractmethod
    async def store(self, crawl: str, pages: Sequence[RawPage]) -> list[str]:
        """Store pages and return the place of each. They are durable when this returns.

        Storing pages again does no harm, but `pages` may then return them twice.
        """

    @abstractmethod
    def pages(self, crawl: str, on_unreadable: OnUnreadable) -> AsyncIterator[RawPage]:
        """Read all pages of a crawl, oldest first as far as the clocks of the workers agree.

        Once reading has begun, it waits for a store that is away. Missing and damaged pages are
        reported to `on_unreadable` and skipped.
        """

    @abstractmethod
    async def read(self, place: str) -> RawPage:
        """The page at a place that `store` returned. Raises StorageFailed if it is gone."""

    @abstractmethod
    async def close(self) -> None:
        """Close the archive."""
