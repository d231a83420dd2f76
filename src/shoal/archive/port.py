"""The archive port: raw pages are stored before their task is finished, and read again by
reparsing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence

import msgspec

from shoal.core.task import Task
from shoal.errors import StorageFailed

OnUnreadable = Callable[[StorageFailed], object]


class RawPage(msgspec.Struct, kw_only=True):
    """One answer of a site, with all that reading it again takes."""

    task: Task
    fingerprint: bytes
    status: int
    headers: list[tuple[str, str]]
    """As they came, but the body is no longer compressed as they may say. Bytes that are not UTF-8
    are kept as surrogate escapes."""
    fetched_at: float
    """When it was complete. The items that were read from it have this time."""
    body: bytes
    digest: bytes
    """Of the body: see `shoal.core.content`."""
    identity: str = ""
    """The account that it was fetched with: `shop#alice`."""


class Archive(ABC):
    """A store of raw pages. Errors are StorageBusy and StorageFailed, as for the results, and
    ConfigError where it is set up wrong."""

    @abstractmethod
    async def check(self) -> None:
        """Raise ConfigError if nothing could be stored here."""

    @abstractmethod
    async def store(self, crawl: str, pages: Sequence[RawPage]) -> list[str]:
        """Store pages, and return where each is. When this returns they are durable.

        Storing them again does no harm: what is read back may then come twice.
        """

    @abstractmethod
    def pages(self, crawl: str, on_unreadable: OnUnreadable) -> AsyncIterator[RawPage]:
        """All pages of a crawl, oldest first as far as several workers agree on that.

        Once it has begun, a store that is away is waited for. What is gone or damaged is told to
        `on_unreadable`, and skipped.
        """

    @abstractmethod
    async def read(self, place: str) -> RawPage:
        """The page at a place that `store` returned. Raises StorageFailed if it is gone."""

    @abstractmethod
    async def close(self) -> None:
        """Close the store of the pages."""
