"""The port of archive formats: writing a batch of pages as objects, and reading it back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from typing import ClassVar

from shoal.archive.port import OnUnreadable, RawPage


class PageFormat(ABC):
    """A format of the archive. The place of a page is `<name of the batch>#<where in it>`."""

    folder: ClassVar[str]
    """The folder of its batches, below that of the crawl."""

    @abstractmethod
    async def store(self, crawl: str, pages: Sequence[RawPage]) -> list[str]:
        """Store a batch of pages, and return the place of each: see `Archive.store`."""

    @abstractmethod
    def pages_in(self, name: str, on_unreadable: OnUnreadable) -> AsyncIterator[RawPage]:
        """Read all pages of a batch in order. Damaged pages are reported to `on_unreadable`."""

    @abstractmethod
    async def page_at(self, name: str, where: int) -> RawPage:
        """Read one page of a batch. Raises StorageFailed if it is not there."""
