"""The end of the stream that delivers: entries are taken, held, and removed when they are
stored."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence

import msgspec

from shoal.results.stream import wire
from shoal.results.stream.link import StreamLink
from shoal.results.stream.wire import Garbage, NotOurs, RawEntry, StreamEntry
from shoal.runtime.process import worker_name

GROUP = "drain"
TAKE_ENTRIES = 100
TAKE_BYTES = wire.ENTRY_BYTES
HELD_S = 30.0
"""A deliverer that has not touched its entries for so long is dead; others take them."""
LONG_DEAD_S = 3600.0
GARBAGE_KEPT = 1000
"""Entries that are not ours, of which a record is kept: the newest."""


class Taken(msgspec.Struct):
    """What `ResultQueue.take` gave a deliverer."""

    waiting: int
    """All entries in the stream, those that deliverers hold among them."""
    entries: list[StreamEntry]
    garbage: list[Garbage]


class ResultQueue:
    """The results that wait in a stream. Any number of deliverers share it, each with a queue
    object of its own."""

    def __init__(self, address: str) -> None:
        self._link = StreamLink(address)
        self._deliverer = f"{worker_name(os.getpid())}:{secrets.token_hex(4)}"

    async def check(self) -> None:
        """Look whether the stream can be used, before work begins. Raises ConfigError."""
        await self._link.check()

    async def take(self) -> Taken:
        """The next entries, ours until we are silent for too long: first what dead deliverers held.
        They are few enough, and small enough, to be held in memory."""
        limits = (round(HELD_S * 1000), TAKE_ENTRIES, TAKE_BYTES)
        key = self._link.key
        waiting, raw = await self._link.run("take", [key], GROUP, self._deliverer, *limits)
        taken = Taken(waiting, [], [])
        for entry in raw:
            _sort_in(taken, entry)
        return taken

    async def done(self, entries: Sequence[StreamEntry]) -> None:
        """Remove entries that are in the store."""
        await self._remove([entry.id for entry in entries], [])

    async def put_aside(self, garbage: Sequence[Garbage]) -> str:
        """Remove entries that are not ours, but for a record of them. Returns the key that has
        it."""
        records = [msgspec.json.encode(record) for record in garbage]
        await self._remove([record.id for record in garbage], records)
        return self._link.garbage_key

    async def touch(self, entries: Sequence[StreamEntry]) -> None:
        """Keep holding entries, so that nobody takes them. Those that are done by now are passed
        over."""
        await self._hold(entries, idle_s=0.0)

    async def give_back(self, entries: Sequence[StreamEntry]) -> None:
        """Let other deliverers take entries at once."""
        await self._hold(entries, idle_s=2 * HELD_S)

    async def leave(self) -> None:
        """Sign off: this deliverer takes no more. What it holds, if anything, goes to others in
        time."""
        long_ms = round(LONG_DEAD_S * 1000)
        await self._link.run("leave", [self._link.key], GROUP, self._deliverer, long_ms)

    async def close(self) -> None:
        """Close the connections."""
        await self._link.close()

    async def _remove(self, ids: Sequence[bytes | str], records: Sequence[bytes]) -> None:
        keys = [self._link.key, self._link.garbage_key]
        await self._link.run("done", keys, GROUP, GARBAGE_KEPT, len(ids), *ids, *records)

    async def _hold(self, entries: Sequence[StreamEntry], *, idle_s: float) -> None:
        ids = [entry.id for entry in entries]
        idle_ms = round(idle_s * 1000)
        await self._link.run("hold", [self._link.key], GROUP, self._deliverer, idle_ms, *ids)


def _sort_in(taken: Taken, raw: RawEntry) -> None:
    try:
        taken.entries.append(wire.read(raw))
    except NotOurs as error:
        taken.garbage.append(wire.garbage(raw, str(error)))
