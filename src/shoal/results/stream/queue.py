"""The drainers' end of the stream: entries are taken, held, and removed when they are stored."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence

import msgspec

from shoal.results.stream import wire
from shoal.results.stream.link import StreamLink
from shoal.results.stream.wire import Entry, Garbage, NotOurs, RawEntry
from shoal.runtime.process import worker_name

GROUP = "drain"
TAKE_ENTRIES = 100
TAKE_BYTES = wire.ENTRY_BYTES
HELD_S = 30.0
"""A drainer that has not touched its entries for so long is dead; others take them."""
LONG_DEAD_S = 3600.0
GARBAGE_KEPT = 1000
"""The newest ones; older ones make room."""


class Taken(msgspec.Struct):
    """What a drainer got."""

    waiting: int
    """All entries in the stream, those that drainers hold among them."""
    entries: list[Entry]
    garbage: list[Garbage]


class ResultQueue:
    """Any number of drainers, each with a queue object of its own, share what is in the stream."""

    def __init__(self, address: str) -> None:
        self._link = StreamLink(address)
        self._drainer = f"{worker_name(os.getpid())}:{secrets.token_hex(4)}"

    async def check(self) -> None:
        """Look whether the stream can be used, before work begins. Raises ConfigError."""
        await self._link.check()

    async def take(self) -> Taken:
        """The next entries, ours until we are silent for too long: first what dead drainers held.
        They are few enough, and small enough, to be held in memory."""
        limits = (round(HELD_S * 1000), TAKE_ENTRIES, TAKE_BYTES)
        key = self._link.key
        waiting, raw = await self._link.run("take", [key], GROUP, self._drainer, *limits)
        taken = Taken(waiting, [], [])
        for entry in raw:
            _sort_in(taken, entry)
        return taken

    async def done(self, entries: Sequence[Entry]) -> None:
        """These are in the store: remove them."""
        await self._remove([entry.id for entry in entries], [])

    async def put_aside(self, garbage: Sequence[Garbage]) -> str:
        """Remove what is not ours, but for a record of it. Returns where that is."""
        records = [msgspec.json.encode(record) for record in garbage]
        await self._remove([record.id for record in garbage], records)
        return self._link.garbage_key

    async def touch(self, entries: Sequence[Entry]) -> None:
        """Say that we still have them. Those that are done by now are not ours again."""
        await self._hold(entries, idle_s=0.0)

    async def give_back(self, entries: Sequence[Entry]) -> None:
        """Let other drainers have them at once."""
        await self._hold(entries, idle_s=2 * HELD_S)

    async def leave(self) -> None:
        """Take no more. What we hold, if anything, goes to others in time."""
        long_ms = round(LONG_DEAD_S * 1000)
        await self._link.run("leave", [self._link.key], GROUP, self._drainer, long_ms)

    async def close(self) -> None:
        """Close the connections."""
        await self._link.close()

    async def _remove(self, ids: Sequence[bytes | str], records: Sequence[bytes]) -> None:
        keys = [self._link.key, self._link.garbage_key]
        await self._link.run("done", keys, GROUP, GARBAGE_KEPT, len(ids), *ids, *records)

    async def _hold(self, entries: Sequence[Entry], *, idle_s: float) -> None:
        ids = [entry.id for entry in entries]
        idle_ms = round(idle_s * 1000)
        await self._link.run("hold", [self._link.key], GROUP, self._drainer, idle_ms, *ids)


def _sort_in(taken: Taken, raw: RawEntry) -> None:
    try:
        taken.entries.append(wire.read(raw))
    except NotOurs as error:
        taken.garbage.append(wire.garbage(raw, str(error)))
