"""Gzip for archives. The same data always gives the same bytes."""

from __future__ import annotations

import zlib

from shoal.errors import StorageFailed

LEVEL = 6
CHUNK = 64 * 1024
PROBE = 4 * 1024
"""How much of a member is enough to decompress its first few characters."""
_MAGIC = b"\x1f\x8b\x08"
_GZIP = 16 + zlib.MAX_WBITS


def compressed(data: bytes) -> bytes:
    """Compress data to one gzip member without a timestamp. Releases the GIL meanwhile."""
    return zlib.compress(data, LEVEL, wbits=_GZIP)


def decompressed(data: bytes, name: str) -> bytes:
    """The content of a gzip member. Raises StorageFailed if it is damaged."""
    try:
        return zlib.decompress(data, wbits=_GZIP)
    except zlib.error as error:
        raise StorageFailed(f"{name} is damaged: {error}") from None


def member_at(data: bytes, start: int, place: str) -> tuple[bytes, int]:
    """The content of the gzip member at a position, and where it ends. Raises StorageFailed.

    Decompresses in small chunks, as zlib copies the data left over after a member.
    """
    position = start
    engine = zlib.decompressobj(_GZIP)
    parts = []
    while not engine.eof:
        chunk = data[position : position + CHUNK]
        if not chunk:
            raise StorageFailed(f"{place} is damaged: it is cut off")
        try:
            parts.append(engine.decompress(chunk))
        except zlib.error as error:
            raise StorageFailed(f"{place} is damaged: {error}") from None
        position += len(chunk)
    return b"".join(parts), position - len(engine.unused_data)


def find_member(data: bytes, start: int, beginning: bytes) -> int:
    """The position of the next gzip member with this beginning; the end of the data if none.

    Used to continue after a damaged member, whose end cannot be known.
    """
    position = data.find(_MAGIC, start)
    while position >= 0 and not _begins(data[position : position + PROBE], beginning):
        position = data.find(_MAGIC, position + 1)
    return position if position >= 0 else len(data)


def _begins(member: bytes, beginning: bytes) -> bool:
    try:
        return zlib.decompressobj(_GZIP).decompress(member, len(beginning)) == beginning
    except zlib.error:
        return False
