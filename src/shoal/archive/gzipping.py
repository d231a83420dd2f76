"""Gzip as archives use it. The same data always gives the same bytes."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from shoal.errors import StorageFailed

LEVEL = 6
CHUNK = 64 * 1024
_GZIP = 16 + zlib.MAX_WBITS


def compressed(data: bytes) -> bytes:
    """One gzip member, without a time in it. Lets other threads run meanwhile."""
    return zlib.compress(data, LEVEL, wbits=_GZIP)


def decompressed(data: bytes, name: str) -> bytes:
    """What a gzip member holds. Raises StorageFailed if it is damaged."""
    try:
        return zlib.decompress(data, wbits=_GZIP)
    except zlib.error as error:
        raise StorageFailed(f"{name} is damaged: {error}") from None


def members(data: bytes, start: int, name: str) -> Iterator[bytes]:
    """What each gzip member holds, from a position on. Raises StorageFailed where one is damaged.

    In small steps: what is left over after a member is copied each time.
    """
    position = start
    while position < len(data):
        engine = zlib.decompressobj(_GZIP)
        parts = []
        while not engine.eof:
            chunk = data[position : position + CHUNK]
            if not chunk:
                raise StorageFailed(f"{name} is damaged: it is cut off")
            try:
                parts.append(engine.decompress(chunk))
            except zlib.error as error:
                raise StorageFailed(f"{name} is damaged: {error}") from None
            position += len(chunk)
        position -= len(engine.unused_data)
        yield b"".join(parts)
