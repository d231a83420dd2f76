"""The results port: the store of items, rejected items and the page log. What a task has given is
always saved before the task is finished."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from typing import ClassVar

import msgspec

from shoal.config import History
from shoal.core.files import StoredFile
from shoal.core.records import RejectedItem, StoredItem


class PageLog(msgspec.Struct, kw_only=True):
    """One try at one URL: a record of the page log. Its fields are the columns of the stores."""

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
    """Links on this page that the spider wants, those included that are known or not allowed."""
    error: str = ""
    parent: str | None = None
    digest: bytes = b""
    """Of the body: pages with the same digest are the same. Empty if there was no body."""
    simhash: int | None = None
    """Of the text, if the spider asks for it: pages that are alike differ in few of its 64 bits."""
    archived: str = ""
    """The place of the page in the archive. Empty if it is not there."""
    etag: str = ""
    last_modified: str = ""
    """What the server said of this version of the page, for the next crawl to ask with."""
    exit: str = ""
    """The id of the exit that it was asked for by. Empty: without one."""
    block: str = ""
    """What kind of block the answer was. Empty: it was none."""


class KnownPage(msgspec.Struct, kw_only=True):
    """What a crawl knows of a page that it has read: all that is needed where the page is asked for
    again and has not changed."""

    etag: str = ""
    last_modified: str = ""
    links: int = 0
    """Links to follow: the most that any visit has found."""
    read: int = 0
    """Items that the last visit gave."""
    rejected: int = 0
    """Items of the page that were rejected."""
    digest: bytes = b""
    simhash: int | None = None
    items: list[StoredItem] = []
    """The items whose newest scrape came from this page, but for those that are gone. None for a
    page with links to follow."""
    file: StoredFile | None = None
    """What is known of it as a file of items, if it is one."""


class NearPage(msgspec.Struct, frozen=True):
    """A page that is nearly the same as another one: the first of its group that was looked at."""

    fingerprint: bytes
    like: bytes
    """The fingerprint of the other page."""
    distance: int
    """The bits in which their simhashes differ."""


class Keep(msgspec.Struct, frozen=True):
    """What the rules of a crawl say about storing its items: history and refresh."""

    history: History = "changed"
    """Which readings of an item are kept beside its current state."""
    refresh_s: float = 0.0
    """An item that was read less than this before is left alone."""

    @property
    def has_history(self) -> bool:
        """Whether readings of items are kept at all."""
        return self.history != "off"

    @property
    def all_readings(self) -> bool:
        """Whether readings are kept that say the same as the one before."""
        return self.history == "always"


class Batch(msgspec.Struct):
    """What a worker saves in one go: page log, items, rejected items, and what became of files."""

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
    """Changed since it was first stored, or since the crawl that this one follows on."""
    gone: bool = False
    """Also those that are gone. `since` is then, for these, the time at which they were."""


class RunNote(msgspec.Struct, frozen=True):
    """What the store remembers of a crawl's last run. No address has a password in it."""

    frontier: str
    targets: list[str] = []
    """What the spider was called on the command line; empty if it came from Python."""
    archive: str = ""
    previous: str = ""
    """The earlier crawl that it follows on, if there is one."""
    file_store: str = ""
    """Where the files of its items are. Empty: nowhere."""


class Pruned(msgspec.Struct):
    """What `Results.prune` removed, or would remove."""

    observations: int = 0
    pages: int = 0
    tables: list[str] = []
    """The months' tables that were dropped or detached as a whole."""


EVERYTHING = Wanted()

Place = tuple[str, str]
"""The kind and the key of an item, behind which a stream in their order goes on."""

FIRST_PLACE: Place = ("", "")
"""Before all items: a kind has a name."""

FIRST_ROWS, STREAM_ROWS, STREAM_BYTES = 16, 1_000, 4 * 1024 * 1024
"""How much of a stream is read at a time: rows at first, then rows and bytes at most."""


class Results(ABC):
    """A store of items. Errors are StorageBusy and StorageFailed, as for the frontier."""

    readable: ClassVar[bool] = True
    """Whether it can be asked for what was saved. A stream, through which results only pass,
    cannot: all but `save`, `check`, `note_of`, `note_run` and `close` then raise ConfigError."""

    @abstractmethod
    async def save(self, crawl: str, batch: Batch) -> None:
        """Store a batch, all of it or nothing; when this returns it is durable.

        Saving a batch again changes nothing. An older scrape never overwrites a newer one; of two
        at the same moment the later arrival wins. Text that is no valid Unicode (a lone surrogate)
        is stored with that part written out as `\\udXXX`, and in stores that have no NUL character
        that one as `\\u0000`. Times are kept to the microsecond.

        A reading of an item also goes to its history, unless it says the same as the newest reading
        did when it was saved, or `batch.keep` asks for another rule. An item that the database does
        not take is saved as a rejected one.
        """

    async def items(self, crawl: str, wanted: Wanted = EVERYTHING) -> AsyncIterator[StoredItem]:
        """The current state of items, streamed in the order they were first stored."""
        async for _, item in self.items_from(crawl, 0, wanted):
            yield item

    async def items_from(
        self, crawl: str, place: int, wanted: Wanted = EVERYTHING
    ) -> AsyncIterator[tuple[int, StoredItem]]:
        """Items behind a place, each with its own; 0 is before all. Between parts nothing is open:
        a slow reader holds no snapshot. An item that is stored meanwhile may get a place that the
        reader has passed."""
        limit = FIRST_ROWS
        while found := await self.items_after(crawl, place, limit, wanted):
            for each in found:
                yield each
            place = found[-1][0]
            # They grow while they are small: a database may measure all rows of a part before it
            # knows where to cut it.
            limit = min(2 * len(found), STREAM_ROWS)

    @abstractmethod
    async def items_after(
        self, crawl: str, place: int, limit: int, wanted: Wanted = EVERYTHING
    ) -> list[tuple[int, StoredItem]]:
        """A part of that stream: at most `limit` items, fewer where they are large, none if there
        are no more."""

    async def items_by_key(
        self, crawl: str, kind: str | None = None, at: float | None = None
    ) -> AsyncIterator[StoredItem]:
        """The items that are there, streamed by kind and key, in the order of code points.

        With `at` they are as they were at that moment, as far as readings of them were kept: data
        is `{}` where none was. Between parts nothing is open, as in `items_from`."""
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
        """A part of that stream, of what comes behind a place: at most `limit` items, fewer where
        they are large, none if there are no more."""

    @abstractmethod
    async def history(self, crawl: str, kind: str, key: str) -> list[StoredItem]:
        """The readings of one item that were kept, oldest first."""

    @abstractmethod
    async def count(self, crawl: str) -> dict[str, int]:
        """Items per kind, without those that are gone."""

    @abstractmethod
    async def pages_of(self, crawl: str, fingerprint: bytes) -> list[PageLog]:
        """Every try at one URL, oldest first."""

    @abstractmethod
    async def tasks_at(self, crawl: str, urls: Sequence[str], limit: int) -> list[bytes]:
        """The fingerprints of at most `limit` tasks that were tried at one of these addresses, as
        they are spelled here. Nothing is kept to find them by: the whole page log is read."""

    @abstractmethod
    async def items_of(self, crawl: str, fingerprint: bytes) -> list[StoredItem]:
        """The stored items whose newest scrape came from this URL, those that are gone included."""

    @abstractmethod
    async def known_pages(
        self, crawl: str, fingerprints: Sequence[bytes]
    ) -> dict[bytes, KnownPage]:
        """What is known of pages from the last visits that succeeded. Pages without one are left
        out."""

    @abstractmethod
    async def mark_gone(self, crawl: str, previous: str, at: float) -> int:
        """Copy the items of an earlier crawl that this one has not found, and mark them as gone.

        One that was gone there already keeps its time. An item is left out if its page gave this
        crawl something that was rejected: it may be that. What is read later takes the mark away,
        and counts as stored for the first time. What the earlier crawl knows of files is copied,
        too, unless this one knows of them. Doing it again changes nothing. Returns how many items
        are gone now that were not gone in the earlier crawl.
        """

    @abstractmethod
    async def rejected_of(self, crawl: str, fingerprint: bytes) -> list[RejectedItem]:
        """The rejected items of one URL, in the order they were stored."""

    @abstractmethod
    def rejected(self, crawl: str) -> AsyncIterator[RejectedItem]:
        """All rejected items, streamed in the order they were stored."""

    @abstractmethod
    async def files_of(self, crawl: str, fingerprints: Sequence[bytes]) -> dict[bytes, StoredFile]:
        """What became of files. Those of which nothing is known are left out."""

    @abstractmethod
    def files(self, crawl: str) -> AsyncIterator[StoredFile]:
        """What became of all files of a crawl, streamed in the order of their fingerprints."""

    @abstractmethod
    def signatures(self, crawl: str) -> AsyncIterator[tuple[bytes, int]]:
        """The fingerprints and simhashes of all pages that have one."""

    @abstractmethod
    async def mark_near(self, crawl: str, pages: Sequence[NearPage]) -> None:
        """Note which pages are nearly the same as others. Replaces what was noted of them."""

    @abstractmethod
    async def near_of(self, crawl: str, fingerprint: bytes) -> NearPage | None:
        """Which page this one is nearly the same as, if that was noted."""

    @abstractmethod
    async def note_of(self, crawl: str) -> RunNote | None:
        """How the crawl last ran: what `note_run` noted."""

    @abstractmethod
    async def note_run(self, crawl: str, note: RunNote) -> None:
        """Note how the crawl runs: where its queue is, and its targets."""

    @abstractmethod
    async def prune(self, before: float, *, detach: bool = False, dry_run: bool = False) -> Pruned:
        """Remove readings and page logs of all crawls from before a moment; items stay.

        What is kept by the month goes by whole months. `detach` keeps their tables, out of use.
        """

    async def check(self) -> None:
        """Look whether the store can be used, before work begins. Raises ConfigError."""
        return

    @abstractmethod
    async def forget(self, crawl: str) -> None:
        """Delete all that belongs to the crawl."""

    @abstractmethod
    async def close(self) -> None:
        """Close the connections, or the file."""
