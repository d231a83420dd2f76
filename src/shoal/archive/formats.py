"""The port of archive formats: how a batch of pages is written as objects, and read back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from typing import ClassVar

from shoal.archive.port import OnUnreadable, RawPage


class PageFormat(ABC):
    """A format of the archive. A place, which says where a page is, is `<name of the batch>#<where
    in it>`."""

    folder: ClassVar[str]
    """The folder, below that of the crawl, in which its batches are."""

    @abstractmethod
    async def store(self, crawl: str, pages: Sequence[RawPage]) -> list[str]:
        """Store a batch of pages, and return the place of each: see `Archive.store`."""

    @abstractmethod
    def pages_in(self, name: str, on_unreadable: OnUnreadable) -> AsyncIterator[RawPage]:
        """Read all pages of a batch, in order. What is damaged goes to `on_unreadable`."""

    @abstractmethod
    async def page_at(self, name: str, where: int) -> RawPage:
        """Read one page of a batch. Raises StorageFailed if it is not there."""
