"""The results port: the store of items, rejected items and the page log.

The results of a task are always saved before the task is finished.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from typing import ClassVar

import msgspec

from shoal.config import History
from shoal.core.files import StoredFile
from shoal.core.records import RejectedItem, StoredItem


class PageLog(msgspec.Struct, kw_only=True):
    """A record of the page log: one try at one URL. Its fields are the columns of the stores."""

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
    """Links on this page that the spider wants, including those already known or not allowed."""
    error: str = ""
    parent: str | None = None
    digest: bytes = b""
    """A hash of the body: equal for equal pages. Empty if there was no body."""
    simhash: int | None = None
    """The simhash of the text, if the spider asks for it: similar pages differ in few of its 64
    bits."""
    archived: str = ""
    """The place of the page in the archive. Empty if it is not archived."""
    etag: str = ""
    last_modified: str = ""
    """The validators of this version of the page, for conditional requests of the next crawl."""
    exit: str = ""
    """The id of the exit that the request took. Empty: none."""
    block: str = ""
    """The kind of block that the answer was. Empty: not blocked."""


class KnownPage(msgspec.Struct, kw_only=True):
    """What a crawl knows about a page that it has read: everything needed if the page is requested
    again and has not changed."""

    etag: str = ""
    last_modified: str = ""
    links: int = 0
    """The highest number of links to follow that any visit has found."""
    read: int = 0
    """Items that the last visit found."""
    rejected: int = 0
    """Items of the page that were rejected."""
    digest: bytes = b""
    simhash: int | None = None
    items: list[StoredItem] = []
    """The items whose newest scrape came from this page, without those that are gone. Empty for a
    page with links to follow."""
    file: StoredFile | None = None
    """The page's record as a file of items, if it is one."""


class NearPage(msgspec.Struct, frozen=True):
    """A page that is nearly the same as another one: the first page seen of their group."""

    fingerprint: bytes
    like: bytes
    """The fingerprint of the other page."""
    distance: int
    """The number of bits in which their simhashes differ."""


class Keep(msgspec.Struct, frozen=True):
    """The rules of a crawl for storing its items: history and refresh."""

    history: History = "changed"
    """Which readings of an item are kept besides its current state."""
    refresh_s: float = 0.0
    """An item that was read less than this long ago is not updated."""

    @property
    def has_history(self) -> bool:
        """Whether any readings of items are kept."""
        return self.history != "off"

    @property
    def all_readings(self) -> bool:
        """Whether readings without a change are kept too."""
        return self.history == "always"


class Batch(msgspec.Struct):
    """The records that a worker saves together: page log, items, rejected items and files."""

    pages: list[PageLog] = []
    items: list[StoredItem] = []
    rejected: list[RejectedItem] = []
    keep: Keep = Keep()
    files: list[StoredFile] = []


class Wanted(msgspec.Struct, frozen=True):
    """A filter for reading items. All its conditions must hold."""

    kind: str | None = None
    since: float | None = None
    """Scraped at this time or later; with `changed`: changed at this time or later."""
    changed: bool = False
    """Changed since it was first stored, or since the previous crawl that this one builds on."""
    gone: bool = False
    """Include items that are gone. For them, `since` is compared with the time they were gone."""


class RunNote(msgspec.Struct, frozen=True):
    """What the store remembers about a crawl's last run. Its addresses contain no passwords."""

    frontier: str
    targets: list[str] = []
    """The spider as given on the command line; empty if the crawl was started from Python."""
    archive: str = ""
    previous: str = ""
    """The earlier crawl that this one builds on, if any."""
    file_store: str = ""
    """Where the files of its items are. Empty: they are not stored."""


class Pruned(msgspec.Struct):
    """What `Results.prune` removed, or would remove."""

    observations: int = 0
    pages: int = 0
    tables: list[str] = []
    """The tables of months that were dropped or detached as a whole."""


EVERYTHING = Wanted()

Place = tuple[str, str]
"""The kind and key of an item: a position in a stream that is sorted by them."""

FIRST_PLACE: Place = ("", "")
"""The position before all items, as no kind is empty."""

FIRST_ROWS, STREAM_ROWS, STREAM_BYTES = 16, 1_000, 4 * 1024 * 1024
"""How much of a stream is read at a time: the rows of the first part, and the maximum number of
rows and of bytes of any part."""


class Results(ABC):
    """A store of results. All methods raise StorageBusy and StorageFailed, as in the frontier."""

    readable: ClassVar[bool] = True
    """Whether saved results can be read back. Not from a stream, which results only pass through:
    there, all methods but `save`, `check`, `note_of`, `note_run` and `close` raise ConfigError."""

    @abstractmethod
    async def save(self, crawl: str, batch: Batch) -> None:
        """Store a whole batch or nothing. It is durable when this returns.

        Saving a batch again changes nothing. An older scrape never overwrites a newer one; of two
        scrapes at the same moment, the one that arrives later wins. Lone surrogates, which are not
        valid Unicode, are stored written out as `\\udXXX`; in stores without a NUL character, that
        is stored as `\\u0000`. Times are kept to the microsecond.

        A reading of an item also goes to its history, unless it equals the newest reading at the
        time of saving. `batch.keep` may set another rule. An item that the database does not accept
        is saved as a rejected item.
        """

    async def items(self, crawl: str, wanted: Wanted = EVERYTHING) -> AsyncIterator[StoredItem]:
        """Stream the current state of items, in the order they were first stored."""
        async for _, item in self.items_from(crawl, 0, wanted):
            yield item

    async def items_from(
        self, crawl: str, place: int, wanted: Wanted = EVERYTHING
    ) -> AsyncIterator[tuple[int, StoredItem]]:
        """Stream the items after a place, each with its own place. Place 0 is before all items.

        The stream is read in parts, and nothing stays open in between: a slow reader holds no
        snapshot. An item stored meanwhile may get a place that the reader has already passed.
        """
        limit = FIRST_ROWS
        while found := await self.items_after(crawl, place, limit, wanted):
            for each in found:
                yield each
            place = found[-1][0]
            # Start with small parts and let them grow: a database may measure all rows of a part
            # before it knows where to cut it.
            limit = min(2 * len(found), STREAM_ROWS)

    @abstractmethod
    async def items_after(
        self, crawl: str, place: int, limit: int, wanted: Wanted = EVERYTHING
    ) -> list[tuple[int, StoredItem]]:
        """One part of the stream of `items_from`: at most `limit` items, fewer if they are large,
        none at the end."""

    async def items_by_key(
        self, crawl: str, kind: str | None = None, at: float | None = None
    ) -> AsyncIterator[StoredItem]:
        """Stream the items that are not gone, sorted by kind and key in the order of code points.

        With `at`, items are as they were at that moment, as far as readings were kept; data is `{}`
        for an item without one. Nothing stays open between parts, as in `items_from`."""
        place, limit = FIRST_PLACE, FIRST_ROWS
        while found := await self.items_behind(crawl, place, limit, kind, at):
            for each in found:
                yield each
            place = found[-1].kind, found[-1].key
            limit = min(2 * len(found), STREAM_ROWS)

    @abstractmethod
    async def items_behind(
        self, crawl: str, place: Place, limit: int, kind: str | None, at: float | None
    ) -> list[StoredItem]:
        """One part of the stream of `items_by_key`, after a place: at most `limit` items, fewer if
        they are large, none at the end."""

    @abstractmethod
    async def history(self, crawl: str, kind: str, key: str) -> list[StoredItem]:
        """The kept readings of one item, oldest first."""

    @abstractmethod
    async def count(self, crawl: str) -> dict[str, int]:
        """The number of items of each kind, without those that are gone."""

    @abstractmethod
    async def pages_of(self, crawl: str, fingerprint: bytes) -> list[PageLog]:
        """Every try at one URL, oldest first."""

    @abstractmethod
    async def tasks_at(self, crawl: str, urls: Sequence[str], limit: int) -> list[bytes]:
        """The fingerprints of at most `limit` tasks that were tried at one of these URLs, spelled
        exactly like this. Slow: there is no index for it, so the whole page log is read."""

    @abstractmethod
    async def items_of(self, crawl: str, fingerprint: bytes) -> list[StoredItem]:
        """The stored items whose newest scrape came from this URL, including gone ones."""

    @abstractmethod
    async def known_pages(
        self, crawl: str, fingerprints: Sequence[bytes]
    ) -> dict[bytes, KnownPage]:
        """What is known about pages from their last successful visits. Pages without a successful
        visit are left out."""

    @abstractmethod
    async def mark_gone(self, crawl: str, previous: str, at: float) -> int:
        """Copy the items of an earlier crawl that this one has not found, and mark them as gone.

        An item that was gone in the earlier crawl keeps its time. An item is left out if its page
        gave this crawl a rejected item, as that may be the same one. A later reading removes the
        mark and counts as stored for the first time. File records of the earlier crawl are copied
        too, unless this crawl has its own. Doing it again changes nothing. Returns how many items
        are gone now that were not gone in the earlier crawl.
        """

    @abstractmethod
    async def rejected_of(self, crawl: str, fingerprint: bytes) -> list[RejectedItem]:
        """The rejected items of one URL, in the order they were stored."""

    @abstractmethod
    def rejected(self, crawl: str) -> AsyncIterator[RejectedItem]:
        """Stream all rejected items, in the order they were stored."""

    @abstractmethod
    async def files_of(self, crawl: str, fingerprints: Sequence[bytes]) -> dict[bytes, StoredFile]:
        """The records of files by fingerprint. Unknown files are left out."""

    @abstractmethod
    def files(self, crawl: str) -> AsyncIterator[StoredFile]:
        """Stream the records of all files of a crawl, in the order of their fingerprints."""

    @abstractmethod
    def signatures(self, crawl: str) -> AsyncIterator[tuple[bytes, int]]:
        """Stream fingerprint and simhash of all pages that have a simhash."""

    @abstractmethod
    async def mark_near(self, crawl: str, pages: Sequence[NearPage]) -> None:
        """Store which pages are nearly the same as others. Replaces earlier notes on them."""

    @abstractmethod
    async def near_of(self, crawl: str, fingerprint: bytes) -> NearPage | None:
        """The page that this one is nearly the same as, if `mark_near` stored one."""

    @abstractmethod
    async def note_of(self, crawl: str) -> RunNote | None:
        """How the crawl last ran, as stored by `note_run`."""

    @abstractmethod
    async def note_run(self, crawl: str, note: RunNote) -> None:
        """Store how the crawl runs: its frontier, targets, archive and file store."""

    @abstractmethod
    async def prune(self, before: float, *, detach: bool = False, dry_run: bool = False) -> Pruned:
        """Remove readings and page logs of all crawls from before a moment. Items stay.

        A store with a table for each month removes whole months only. `detach` keeps these tables
        but takes them out of use.
        """

    async def check(self) -> None:
        """Check that the store can be used, before work begins. Raises ConfigError."""
        return

    @abstractmethod
    async def forget(self, crawl: str) -> None:
        """Delete everything that belongs to the crawl."""

    @abstractmethod
    async def close(self) -> None:
        """Close the connections or the file."""
