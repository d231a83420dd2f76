"""The yardstick for the Redis frontier: minimal Lua scripts that move the same bytes.

It deduplicates by 8-byte fingerprints and has a list per host. A lease is an entry in a hash and
one in a sorted set. There is no politeness, no counters, no ownership, no retries. Tasks are packed
beforehand and not unpacked.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

from redis.asyncio import Redis

from shoal.frontier.redis.packing import pack
from shoal.frontier.values import Entry

_LUA = Path(__file__).parent / "lua"
_numbers = count()


class RawQueue:
    """One client of the yardstick."""

    def __init__(self, port: int, sites: Sequence[str]) -> None:
        self._redis: Any = Redis(port=port, protocol=2)  # The library leaves calls untyped.
        self._sites = sites
        self._name = next(_numbers)
        self._turns = count()
        self._digests: dict[str, str] = {}

    async def open(self) -> None:
        """Load the scripts."""
        for name in ("raw_add", "raw_lease", "raw_finish"):
            text = (_LUA / f"{name}.lua").read_text()
            self._digests[name] = await self._redis.script_load(text)

    def prepared(self, entries: Sequence[Entry]) -> list[bytes | str]:
        """Entries as arguments of the script."""
        return [part for entry in entries for part in (entry.task.site, pack(entry))]

    async def add(self, prepared: Sequence[bytes | str]) -> int:
        """Queue the entries that were never seen. Returns how many."""
        return int(await self._run("raw_add", ("seen",), prepared))

    async def lease(self, limit: int) -> list[str]:
        """Lease the same number of entries from each host. Returns their tokens."""
        prefix = f"{self._name}.{next(self._turns)}."
        expires = int(time.time() * 1e6)
        share = -(-limit // len(self._sites))
        args = [prefix, expires, share, *self._sites]
        entries = await self._run("raw_lease", ("held", "due"), args)
        return [f"{prefix}{number + 1}" for number in range(len(entries))]

    async def finish(self, tokens: Sequence[str]) -> None:
        """Release leases."""
        await self._run("raw_finish", ("held", "due"), tokens)

    async def close(self) -> None:
        """Close the connection."""
        await self._redis.aclose()

    async def _run(self, name: str, keys: Sequence[str], args: Sequence[Any]) -> Any:
        digest = self._digests[name]
        return await self._redis.execute_command("EVALSHA", digest, len(keys), *keys, *args)
