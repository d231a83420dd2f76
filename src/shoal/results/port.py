"""The results port: where items and the page log go. Saved before a task is finished, always."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator

import msgspec


class StoredItem(msgspec.Struct, kw_only=True):
    """One item as it is kept: unique on (crawl, kind, key), the newest scrape wins."""

    kind: str
    key: str
    data: bytes
    """The item's fields as a JSON object, without line breaks. Kept byte for byte."""
    url: str
    fingerprint: bytes
    """Of the task whose page it was read from."""
    scraped_at: float


class RejectedItem(msgspec.Struct, kw_only=True):
    """An item that did not pass validation, and why."""

    kind: str
    data: str
    """The item as far as it can be shown: JSON, or its repr."""
    reason: str
    url: str
    fingerprint: bytes
    scraped_at: float


class PageLog(msgspec.Struct, kw_only=True):
    """One try at one URL."""

    fingerprint: bytes
    url: str
    worker: str
    attempt: int
    started_at: float
    duration_s: float
    verdict: str
    status: int | None = None
    body_bytes: int = 0
    items: int = 0
    links: int = 0
    """Links on this page that the crawl wants, known ones included."""
    error: str = ""
    parent: str | None = None


class Batch(msgspec.Struct):
    """What a worker saves in one go."""

    pages: list[PageLog] = []
    items: list[StoredItem] = []
    rejected: list[RejectedItem] = []


class Results(ABC):
    """A store of items. Errors are StorageBusy and StorageFailed, as for the frontier."""

    @abstractmethod
    async def save(self, crawl: str, batch: Batch) -> None:
        """Store a batch, all of it or nothing; when this returns it is durable.

        Saving a batch again changes nothing. An older scrape never overwrites a newer one; of two
        at the same moment the later arrival wins. Text that is no valid Unicode (a lone surrogate)
        is stored with that part written out as `\\udXXX`.
        """

    @abstractmethod
    def items(self, crawl: str, kind: str | None = None) -> AsyncIterator[StoredItem]:
        """All items, streamed in the order they were first stored."""

    @abstractmethod
    async def count(self, crawl: str) -> dict[str, int]:
        """Items per kind."""

    @abstractmethod
    async def pages_of(self, crawl: str, fingerprint: bytes) -> list[PageLog]:
        """Every try at one URL, oldest first."""

    @abstractmethod
    async def items_of(self, crawl: str, fingerprint: bytes) -> list[StoredItem]:
        """The stored items whose newest scrape came from this URL."""

    @abstractmethod
    async def rejected_of(self, crawl: str, fingerprint: bytes) -> list[RejectedItem]:
        """The rejected items of one URL, in the order they were stored."""

    @abstractmethod
    def rejected(self, crawl: str) -> AsyncIterator[RejectedItem]:
        """All rejected items, streamed in the order they were stored."""

    @abstractmethod
    async def frontier_of(self, crawl: str) -> str:
        """Where the queue of the crawl was when it last ran; empty if that was never noted."""

    @abstractmethod
    async def note_frontier(self, crawl: str, address: str) -> None:
        """Note where the queue of the crawl is. The address has no password in it."""

    @abstractmethod
    async def forget(self, crawl: str) -> None:
        """Delete all that belongs to the crawl."""

    @abstractmethod
    async def close(self) -> None: ...
