"""The file store: each file is stored once, under the hash of its content, in a folder or in S3.

files/ab/cdef0123…   the bytes of a file as received, as most files are compressed already
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping

from shoal.archive.objects import Objects
from shoal.errors import StorageFailed, cause_of

PUTS_AT_ONCE = 16
HASHES_KNOWN = 50_000

_PLACE = re.compile(r"files/[0-9a-f]{2}/[0-9a-f]{62}")


class FileStore:
    """Stores files under the SHA-256 of their content.

    As in archives, errors are StorageBusy, StorageFailed, and ConfigError for a wrong setup.
    """

    def __init__(self, address: str, objects: Objects) -> None:
        self.address = address
        self._objects = objects
        self._stored: dict[bytes, None] = {}

    async def check(self) -> None:
        """Check that files can be stored here. Raises ConfigError."""
        await self._objects.check()

    async def put(self, bodies: Mapping[bytes, bytes]) -> None:
        """Store files by their hashes, each at its `place_of`. They are durable when this
        returns."""
        room = asyncio.Semaphore(PUTS_AT_ONCE)
        try:
            async with asyncio.TaskGroup() as group:
                for sha256, body in bodies.items():
                    if sha256 not in self._stored:
                        group.create_task(self._put(room, sha256, body))
        except BaseExceptionGroup as group_error:
            raise cause_of(group_error) from None

    async def get(self, place: str) -> bytes:
        """The file at a place. Raises StorageFailed if it is gone."""
        if not _PLACE.fullmatch(place):
            raise StorageFailed(f"{self._objects.shown}: no place of a file: {place!r:.100}")
        return await self._objects.get(place)

    async def close(self) -> None:
        """Close the store."""
        await self._objects.close()

    async def _put(self, room: asyncio.Semaphore, sha256: bytes, body: bytes) -> None:
        async with room:
            await self._objects.put(place_of(sha256), body)
        self._stored[sha256] = None
        if len(self._stored) > HASHES_KNOWN:
            del self._stored[next(iter(self._stored))]


def place_of(sha256: bytes) -> str:
    """The name of the object that holds the file with this hash."""
    text = sha256.hex()
    return f"files/{text[:2]}/{text[2:]}"
