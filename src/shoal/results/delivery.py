"""Delivers results from a Redis stream to a store (`shoal drain`).

Any number of deliverers may run. Each takes a few batches, saves them, and only after the commit
removes them from the stream. The batches of a dead deliverer go to the others. They may have been
saved already; that does no harm, as saving twice changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import msgspec

from shoal.errors import ShoalError
from shoal.results.port import Batch, Results, RunNote
from shoal.runtime.patience import Stopped, patiently_until, wait_for_event

if TYPE_CHECKING:  # They need the extra `redis`.
    from shoal.results.stream.queue import ResultQueue, Taken
    from shoal.results.stream.wire import Garbage, StreamEntry

T = TypeVar("T")

POLL_S = 0.2
TOUCH_EVERY_S = 10.0
"""Well below the time after which other deliverers take an entry, so that a slow store alone never
makes them do so."""

STREAM = "result stream"
STORE = "results store"

log = logging.getLogger("shoal")


class Delivered(msgspec.Struct):
    """How much a deliverer has stored so far, and how much is waiting."""

    batches: int = 0
    pages: int = 0
    items: int = 0
    rejected: int = 0
    garbage: int = 0
    """Entries of the stream that no worker had written, and that were put aside."""
    waiting: int = 0
    """Batches that were in the stream at the last look and are not delivered yet."""


class _Portion:
    """Entries of the stream that are saved together, with their batches combined into one."""

    def __init__(self, entry: StreamEntry) -> None:
        self.crawl = entry.crawl
        self.content = entry.content
        self.entries = [entry]
        self._keys = _keys(entry.content)

    def takes(self, entry: StreamEntry) -> bool:
        """Add an entry's batch, if possible. Returns whether it was added.

        Only batches of the same crawl and with the same rules for keeping are combined, and never
        two readings of one item: a store compares each reading with its state before the batch.
        """
        mine, other, keys = self.content, entry.content, _keys(entry.content)
        if not isinstance(mine, Batch) or not isinstance(other, Batch):
            return False
        if (self.crawl, mine.keep) != (entry.crawl, other.keep) or not keys.isdisjoint(self._keys):
            return False
        mine.pages += other.pages
        mine.items += other.items
        mine.rejected += other.rejected
        mine.files += other.files
        self._keys |= keys
        self.entries.append(entry)
        return True


class Deliverer:
    """Moves batches from the stream to the store until told to stop, or until there are no more."""

    def __init__(
        self,
        queue: ResultQueue,
        store: Results,
        *,
        until_empty: bool = False,
        watch: Callable[[Delivered], object] = lambda delivered: None,
    ) -> None:
        self.delivered = Delivered()
        self._queue = queue
        self._store = store
        self._until_empty = until_empty
        self._watch = watch
        self._stopping = asyncio.Event()

    def drain(self) -> None:
        """Stop gently: `run` finishes the entries it has taken and returns."""
        self._stopping.set()

    async def run(self) -> None:
        """Deliver until told to stop or, with `until_empty`, until the stream is empty.

        Raises StorageFailed or ConfigError; entries not delivered by then stay in the stream."""
        try:
            # Fail now if the store refuses access, not when there is work.
            await self._patiently(STORE, lambda: self._store.note_of(""))
            while not self._stopping.is_set():
                taken = await self._patiently(STREAM, self._queue.take)
                self.delivered.waiting = taken.waiting
                self._watch(self.delivered)
                if self._until_empty and not taken.waiting:
                    break
                await self._handle(taken)
        except Stopped as reason:
            log.warning("stopped while waiting; what is not stored stays in the stream: %s", reason)
        finally:
            with suppress(ShoalError):  # The other deliverers notice when this one is gone.
                await self._queue.leave()

    async def _handle(self, taken: Taken) -> None:
        if taken.garbage:
            await self._put_aside(taken.garbage)
        if taken.entries:
            await self._store_all(taken.entries)
        else:
            await wait_for_event(self._stopping, POLL_S)

    async def _put_aside(self, garbage: Sequence[Garbage]) -> None:
        where = await self._patiently(STREAM, partial(self._queue.put_aside, garbage))
        self.delivered.garbage += len(garbage)
        self.delivered.waiting -= len(garbage)
        # Anybody may have written this text, and the log may go to a terminal.
        reason = "".join(char if char.isprintable() else "?" for char in garbage[0].reason)
        log.warning(
            "%d entries of the stream are no results, the first because %s: see %s",
            len(garbage),
            reason,
            where,
        )

    async def _store_all(self, entries: Sequence[StreamEntry]) -> None:
        try:
            async with self._holding(entries):
                for portion in _portions(entries):
                    await self._patiently(STORE, partial(self._save, portion))
                    await self._patiently(STREAM, partial(self._queue.done, portion.entries))
                    self._count(portion)
        except ShoalError:
            with suppress(ShoalError):  # Otherwise others get them after a while.
                await self._queue.give_back(entries)
            raise

    async def _save(self, portion: _Portion) -> None:
        if isinstance(portion.content, RunNote):
            await self._store.note_run(portion.crawl, portion.content)
        else:
            await self._store.save(portion.crawl, portion.content)

    def _count(self, portion: _Portion) -> None:
        delivered, content = self.delivered, portion.content
        delivered.waiting -= len(portion.entries)
        if isinstance(content, Batch):
            delivered.batches += len(portion.entries)
            delivered.pages += len(content.pages)
            delivered.items += len(content.items)
            delivered.rejected += len(content.rejected)
        self._watch(delivered)

    @asynccontextmanager
    async def _holding(self, entries: Sequence[StreamEntry]) -> AsyncIterator[None]:
        """Touch the entries regularly, so that other deliverers do not take them."""
        touching = asyncio.create_task(self._touch(entries))
        try:
            yield
        finally:
            touching.cancel()
            await asyncio.wait([touching])

    async def _touch(self, entries: Sequence[StreamEntry]) -> None:
        while True:
            await asyncio.sleep(TOUCH_EVERY_S)
            with suppress(ShoalError):  # The next use of the stream reports the error.
                await self._queue.touch(entries)

    async def _patiently(self, what: str, call: Callable[[], Awaitable[T]]) -> T:
        return await patiently_until(self._stopping, what, call)


def _portions(entries: Sequence[StreamEntry]) -> list[_Portion]:
    """Group entries into as few portions as possible. The entries of a crawl stay in order."""
    portions: list[_Portion] = []
    for entry in entries:
        latest = next((p for p in reversed(portions) if p.crawl == entry.crawl), None)
        if latest is None or not latest.takes(entry):
            portions.append(_Portion(entry))
    return portions


def _keys(content: Batch | RunNote) -> set[tuple[str, str]]:
    items = content.items if isinstance(content, Batch) else []
    return {(item.kind, item.key) for item in items}
