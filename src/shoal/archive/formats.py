"""The format port: how a batch of pages is written as objects, and read back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from typing import ClassVar

from shoal.archive.port import OnUnreadable, RawPage


class PageFormat(ABC):
    """One way to keep pages. A place is `<name of the batch>#<where in it>`."""

    folder: ClassVar[str]
    """The folder, below that of the crawl, in which its batches are."""

    @abstractmethod
    async def store(self, crawl: str, pages: Sequence[RawPage]) -> list[str]:
        """As `Archive.store`."""

    @abstractmethod
    def pages_in(self, name: str, on_unreadable: OnUnreadable) -> AsyncIterator[RawPage]:
        """The pages of a batch, in order. As `Archive.pages`."""

    @abstractmethod
    async def page_at(self, name: str, where: int) -> RawPage:
        """One page of a batch. Raises StorageFailed if it is not there."""
