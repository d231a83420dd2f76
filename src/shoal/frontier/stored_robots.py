"""A host's robots.txt as a frontier keeps it: JSON, packed where it is long.

A text may be 500 kB, and a crawl may have a hundred thousand hosts. Of what was packed no more is
unpacked than `pack` can have made: others may have written there.
"""

from __future__ import annotations

import zlib

import msgspec

from shoal.core.records import Robots

PACKED_FROM = 500
"""Bytes of JSON. What is shorter gains little."""
MOST_BYTES = 6 * 500 * 1024 + 100_000
"""Of JSON: the longest text, were all of it characters that JSON writes as six, and the rest."""

UNREADABLE = Robots("", 60.0, error="robots.txt: what the frontier has of it cannot be read")

_read = msgspec.json.Decoder(Robots).decode


def pack(robots: Robots) -> bytes:
    """Bytes to store."""
    plain = msgspec.json.encode(robots)
    return zlib.compress(plain, 1) if len(plain) >= PACKED_FROM else plain


def unpack(stored: bytes | str) -> Robots:
    """What was stored; that of earlier versions is never packed."""
    try:
        if isinstance(stored, str) or stored.startswith(b"{"):
            return _read(stored)
        unpacking = zlib.decompressobj()
        plain = unpacking.decompress(stored, MOST_BYTES)
        return _read(plain) if unpacking.eof else UNREADABLE
    except (zlib.error, msgspec.MsgspecError, UnicodeDecodeError):
        return UNREADABLE
