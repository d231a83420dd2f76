"""The workers' end of the stream: a results store that can only be written to."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from typing import NoReturn

from shoal.core.files import StoredFile
from shoal.core.records import RejectedItem, StoredItem
from shoal.errors import ConfigError, StorageBusy
from shoal.results.port import (
    EVERYTHING,
    Batch,
    KnownPage,
    NearPage,
    PageLog,
    Place,
    Pruned,
    Results,
    RunNote,
    Wanted,
)
from shoal.results.stream import wire
from shoal.results.stream.link import StreamLink

PARTS_AT_ONCE = 16
"""Parts of a large batch that are sent at once. More would come near the limit of Redis."""

log = logging.getLogger("shoal")


class RedisStreamResults(Results):
    """Saves results to a Redis stream of limited length, from which `shoal drain` delivers them.

    Results can only be read from the store that they are delivered to.
    """

    readable = False

    def __init__(self, address: str) -> None:
        self._link = StreamLink(address)

    async def check(self) -> None:
        await self._link.check()

    async def save(self, crawl: str, batch: Batch) -> None:
        """Add a batch to the stream. Raises StorageBusy if the stream is full.

        A batch of more than 64 MB is added in several steps. If that fails half-way, saving the
        batch again adds all of it.
        """
        parts = wire.encode(batch)
        for start in range(0, len(parts), PARTS_AT_ONCE):
            some = parts[start : start + PARTS_AT_ONCE]
            link = self._link
            if not await link.run("save", [link.key], link.most, crawl, *some):
                raise StorageBusy(
                    f"{link.shown} is full: {link.most:,} batches wait for `shoal drain`"
                )

    async def note_of(self, crawl: str) -> RunNote | None:
        stored = await self._link.command("HGET", self._link.notes_key, crawl)
        return wire.decode_note(stored) if stored else None

    async def note_run(self, crawl: str, note: RunNote) -> None:
        """Store how the crawl runs, both here and, through the stream, in the results store."""
        if await self._link.is_forgetful():
            log.warning(
                "%s keeps no append-only file: if it restarts, the results in it are lost"
                " (appendonly yes)",
                self._link.shown,
            )
        encoded = wire.encode_note(note)
        await self._link.command("XADD", self._link.key, "*", "crawl", crawl, "note", encoded)
        await self._link.command("HSET", self._link.notes_key, crawl, encoded)

    async def close(self) -> None:
        await self._link.close()

    # Methods that need a store that can be read

    async def items_after(
        self, crawl: str, place: int, limit: int, wanted: Wanted = EVERYTHING
    ) -> list[tuple[int, StoredItem]]:
        self._cannot_be_asked()

    async def items_behind(
        self, crawl: str, place: Place, limit: int, kind: str | None, at: float | None
    ) -> list[StoredItem]:
        self._cannot_be_asked()

    async def history(self, crawl: str, kind: str, key: str) -> list[StoredItem]:
        self._cannot_be_asked()

    async def count(self, crawl: str) -> dict[str, int]:
        self._cannot_be_asked()

    async def pages_of(self, crawl: str, fingerprint: bytes) -> list[PageLog]:
        self._cannot_be_asked()

    async def tasks_at(self, crawl: str, urls: Sequence[str], limit: int) -> list[bytes]:
        self._cannot_be_asked()

    async def items_of(self, crawl: str, fingerprint: bytes) -> list[StoredItem]:
        self._cannot_be_asked()

    async def known_pages(
        self, crawl: str, fingerprints: Sequence[bytes]
    ) -> dict[bytes, KnownPage]:
        self._cannot_be_asked()

    async def mark_gone(self, crawl: str, previous: str, at: float) -> int:
        self._cannot_be_asked()

    async def rejected_of(self, crawl: str, fingerprint: bytes) -> list[RejectedItem]:
        self._cannot_be_asked()

    async def rejected(self, crawl: str) -> AsyncIterator[RejectedItem]:
        self._cannot_be_asked()
        yield  # Makes this an async generator, as in the port.

    async def files_of(self, crawl: str, fingerprints: Sequence[bytes]) -> dict[bytes, StoredFile]:
        self._cannot_be_asked()

    async def files(self, crawl: str) -> AsyncIterator[StoredFile]:
        self._cannot_be_asked()
        yield  # Makes this an async generator, as in the port.

    async def signatures(self, crawl: str) -> AsyncIterator[tuple[bytes, int]]:
        self._cannot_be_asked()
        yield

    async def mark_near(self, crawl: str, pages: Sequence[NearPage]) -> None:
        self._cannot_be_asked()

    async def near_of(self, crawl: str, fingerprint: bytes) -> NearPage | None:
        self._cannot_be_asked()

    async def prune(self, before: float, *, detach: bool = False, dry_run: bool = False) -> Pruned:
        self._cannot_be_asked()

    async def forget(self, crawl: str) -> None:
        """Not possible here: raises ConfigError, as results may be in the stream, in the store or
        in between."""
        raise ConfigError(
            f"{self._link.shown}: results that are on their way cannot be forgotten; for this run"
            " give --results of the store that `shoal drain` fills, or take another --name"
        )

    def _cannot_be_asked(self) -> NoReturn:
        raise ConfigError(
            f"{self._link.shown}: results only pass through here;"
            " give --results of the store that `shoal drain` fills"
        )
