"""A results stream and the store that it is delivered to, as one store for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec
import redis

from shoal.core.files import StoredFile
from shoal.core.records import RejectedItem, StoredItem
from shoal.results.delivery import Delivered, Deliverer
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
from shoal.results.stream import RedisStreamResults, ResultQueue
from shoal.results.stream.queue import GROUP
from shoal.results.stream.wire import Garbage
from support.redis_servers import RedisServer

KEY = "shoal:results"


def stream_url(server: RedisServer, **options: object) -> str:
    """The address of the stream on a server."""
    query = "&".join(f"{name}={value}" for name, value in options.items())
    scheme, _, rest = server.url.partition(":")
    return f"{scheme}-stream:{rest}{'?' if query else ''}{query}"


def waiting(raw: redis.Redis) -> int:
    """The number of entries in the stream."""
    return int(raw.xlen(KEY))


def held(raw: redis.Redis) -> int:
    """The number of entries that deliverers hold."""
    return sum(group["pending"] for group in raw.xinfo_groups(KEY)) if raw.exists(KEY) else 0


def age(raw: redis.Redis) -> None:
    """Make all entries that deliverers hold look as if these had been silent for long."""
    pending: Any = raw.xpending_range(KEY, GROUP, "-", "+", 10_000)
    for entry in pending:
        names = (KEY, GROUP, entry["consumer"])
        raw.xclaim(*names, 0, [entry["message_id"]], idle=3_600_000, justid=True)


def put_aside(raw: redis.Redis) -> list[Garbage]:
    """The entries set aside because Shoal did not write them, newest first."""
    records = raw.lrange(f"{KEY}:garbage", 0, -1)
    return [msgspec.json.decode(record, type=Garbage) for record in records]


async def deliver_all(address: str, store: Results) -> Delivered:
    """Deliver entries to the store until the stream is empty."""
    queue = ResultQueue(address)
    try:
        deliverer = Deliverer(queue, store, until_empty=True)
        await deliverer.run()
        return deliverer.delivered
    finally:
        await queue.close()


class DeliveredResults(Results):
    """A store that saves to the stream. Every query delivers the stream first and then asks the
    store behind it. So does `forget`, which the stream itself refuses."""

    def __init__(self, address: str, store: Results) -> None:
        self._address = address
        self._stream = RedisStreamResults(address)
        self._store = store

    async def save(self, crawl: str, batch: Batch) -> None:
        await self._stream.save(crawl, batch)

    async def note_run(self, crawl: str, note: RunNote) -> None:
        await self._stream.note_run(crawl, note)

    async def note_of(self, crawl: str) -> RunNote | None:
        return await (await self._filled()).note_of(crawl)

    async def items_after(
        self, crawl: str, place: int, limit: int, wanted: Wanted = EVERYTHING
    ) -> list[tuple[int, StoredItem]]:
        return await (await self._filled()).items_after(crawl, place, limit, wanted)

    async def items_behind(
        self, crawl: str, place: Place, limit: int, kind: str | None, at: float | None
    ) -> list[StoredItem]:
        return await (await self._filled()).items_behind(crawl, place, limit, kind, at)

    async def history(self, crawl: str, kind: str, key: str) -> list[StoredItem]:
        return await (await self._filled()).history(crawl, kind, key)

    async def count(self, crawl: str) -> dict[str, int]:
        return await (await self._filled()).count(crawl)

    async def pages_of(self, crawl: str, fingerprint: bytes) -> list[PageLog]:
        return await (await self._filled()).pages_of(crawl, fingerprint)

    async def tasks_at(self, crawl: str, urls: Sequence[str], limit: int) -> list[bytes]:
        return await (await self._filled()).tasks_at(crawl, urls, limit)

    async def items_of(self, crawl: str, fingerprint: bytes) -> list[StoredItem]:
        return await (await self._filled()).items_of(crawl, fingerprint)

    async def known_pages(
        self, crawl: str, fingerprints: Sequence[bytes]
    ) -> dict[bytes, KnownPage]:
        return await (await self._filled()).known_pages(crawl, fingerprints)

    async def mark_gone(self, crawl: str, previous: str, at: float) -> int:
        return await (await self._filled()).mark_gone(crawl, previous, at)

    async def rejected_of(self, crawl: str, fingerprint: bytes) -> list[RejectedItem]:
        return await (await self._filled()).rejected_of(crawl, fingerprint)

    async def rejected(self, crawl: str) -> AsyncIterator[RejectedItem]:
        async for item in (await self._filled()).rejected(crawl):
            yield item

    async def files_of(self, crawl: str, fingerprints: Sequence[bytes]) -> dict[bytes, StoredFile]:
        return await (await self._filled()).files_of(crawl, fingerprints)

    async def files(self, crawl: str) -> AsyncIterator[StoredFile]:
        async for file in (await self._filled()).files(crawl):
            yield file

    async def signatures(self, crawl: str) -> AsyncIterator[tuple[bytes, int]]:
        async for signature in (await self._filled()).signatures(crawl):
            yield signature

    async def mark_near(self, crawl: str, pages: Sequence[NearPage]) -> None:
        await (await self._filled()).mark_near(crawl, pages)

    async def near_of(self, crawl: str, fingerprint: bytes) -> NearPage | None:
        return await (await self._filled()).near_of(crawl, fingerprint)

    async def prune(self, before: float, *, detach: bool = False, dry_run: bool = False) -> Pruned:
        return await (await self._filled()).prune(before, detach=detach, dry_run=dry_run)

    async def forget(self, crawl: str) -> None:
        await (await self._filled()).forget(crawl)

    async def close(self) -> None:
        await self._stream.close()
        await self._store.close()

    async def _filled(self) -> Results:
        await deliver_all(self._address, self._store)
        return self._store
