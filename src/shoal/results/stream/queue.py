"""The deliverer's end of the stream: takes entries, holds them, and removes them once stored."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence

import msgspec

from shoal.results.stream import wire
from shoal.results.stream.link import StreamLink
from shoal.results.stream.wire import ForeignEntry, Garbage, RawEntry, StreamEntry
from shoal.runtime.process import worker_name

GROUP = "drain"
TAKE_ENTRIES = 100
TAKE_BYTES = wire.ENTRY_BYTES
HELD_S = 30.0
"""A deliverer that has not touched its entries for this long is dead, and others take them."""
LONG_DEAD_S = 3600.0
GARBAGE_KEPT = 1000
"""How many records of entries that no worker had written are kept: the newest."""


class Taken(msgspec.Struct):
    """The result of `ResultQueue.take`."""

    waiting: int
    """All entries in the stream, including those that deliverers hold."""
    entries: list[StreamEntry]
    garbage: list[Garbage]


class ResultQueue:
    """The results that wait in a stream. Any number of deliverers share a stream, each with its own
    `ResultQueue`."""

    def __init__(self, address: str) -> None:
        self._link = StreamLink(address)
        self._deliverer = f"{worker_name(os.getpid())}:{secrets.token_hex(4)}"

    async def check(self) -> None:
        """Check that the stream can be used, before work begins. Raises ConfigError."""
        await self._link.check()

    async def take(self) -> Taken:
        """Take the next entries, first those that dead deliverers held.

        They belong to this deliverer until it has been silent for `HELD_S`. Their number and size
        are limited, so they fit into memory.
        """
        limits = (round(HELD_S * 1000), TAKE_ENTRIES, TAKE_BYTES)
        key = self._link.key
        waiting, raw = await self._link.run("take", [key], GROUP, self._deliverer, *limits)
        taken = Taken(waiting, [], [])
        for entry in raw:
            _sort_in(taken, entry)
        return taken

    async def done(self, entries: Sequence[StreamEntry]) -> None:
        """Remove entries that are safely in the store."""
        await self._remove([entry.id for entry in entries], [])

    async def put_aside(self, garbage: Sequence[Garbage]) -> str:
        """Remove entries that no worker had written, and keep a record of them. Returns the key of
        the records."""
        records = [msgspec.json.encode(record) for record in garbage]
        await self._remove([record.id for record in garbage], records)
        return self._link.garbage_key

    async def touch(self, entries: Sequence[StreamEntry]) -> None:
        """Keep holding entries, so that nobody else takes them. Entries already removed are
        skipped."""
        await self._hold(entries, idle_s=0.0)

    async def give_back(self, entries: Sequence[StreamEntry]) -> None:
        """Let other deliverers take entries at once."""
        await self._hold(entries, idle_s=2 * HELD_S)

    async def leave(self) -> None:
        """Remove this deliverer, which takes no more. If it still holds entries it stays listed,
        and others take them after a while."""
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
    except ForeignEntry as error:
        taken.garbage.append(wire.garbage(raw, str(error)))
