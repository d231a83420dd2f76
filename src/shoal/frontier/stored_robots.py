"""How a frontier stores the robots.txt of a host: as JSON, compressed if it is long.

A text may be 500 kB, and a crawl may have a hundred thousand hosts. No more is decompressed than
`pack` can have written, because other programs may have written to the store.
"""

from __future__ import annotations

import zlib

import msgspec

from shoal.core.records import Robots

PACKED_FROM = 500
"""Bytes of JSON from which it is compressed. A shorter one would gain little."""
MOST_BYTES = 6 * 500 * 1024 + 100_000
"""The most bytes of JSON: for the longest text, if JSON writes each of its characters as six, and
for the other fields."""

UNREADABLE = Robots("", 60.0, error="robots.txt: what the frontier has of it cannot be read")

_read = msgspec.json.Decoder(Robots).decode


def pack(robots: Robots) -> bytes:
    """Return the bytes to store."""
    plain = msgspec.json.encode(robots)
    return zlib.compress(plain, 1) if len(plain) >= PACKED_FROM else plain


def unpack(stored: bytes | str) -> Robots:
    """Return what was stored, or UNREADABLE. Earlier versions did not compress."""
    try:
        if isinstance(stored, str) or stored.startswith(b"{"):
            return _read(stored)
        unpacking = zlib.decompressobj()
        plain = unpacking.decompress(stored, MOST_BYTES)
        return _read(plain) if unpacking.eof else UNREADABLE
    except (zlib.error, msgspec.MsgspecError, UnicodeDecodeError):
        return UNREADABLE
