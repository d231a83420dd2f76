"""Reads the fingerprints of all tasks that Redis itself has (they wait, are held back, delayed,
dead or dropped), and of all tasks that were seen."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

import msgspec

from shoal.drivers.redis.link import RedisLink
from shoal.frontier.redis.stats import priorities_of

CHUNK = 1000
FINGERPRINT = 8
_TEXT_HEADS = {0xD9: 2, 0xDA: 3, 0xDB: 5}
"""The length of the header of a text in MessagePack, by its first byte; short texts have a header
of one byte."""

_unpacked = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode


async def kept_fingerprints(link: RedisLink, prefix: str) -> set[bytes]:
    """The fingerprints of all tasks that Redis itself has, in a crawl without leases."""
    kept = set[bytes]()
    async for host, packed in _scanned(link, "HSCAN", f"{prefix}hosts"):
        for priority in await priorities_of(link, prefix, host.decode(), packed):
            for kind in "qt":
                key = f"{prefix}{kind}:{priority}:".encode() + host
                kept.update(_heads(await link.command("LRANGE", key, 0, -1)))
    kept.update(map(_head, await link.command("LRANGE", f"{prefix}suspects", 0, -1)))
    async for record, _ in _scanned(link, "ZSCAN", f"{prefix}delayed"):
        kept.add(_head(record))
    for name in ("dead", "dropped", "blocked"):
        async for fingerprint, _ in _scanned(link, "HSCAN", f"{prefix}{name}"):
            kept.add(fingerprint)
    return kept


async def seen_fingerprints(link: RedisLink, key: str) -> AsyncIterator[list[bytes]]:
    """All fingerprints of one set, in chunks; some may occur twice."""
    cursor = b"0"
    while True:
        cursor, found = await link.command("SSCAN", key, cursor, "COUNT", CHUNK)
        if found:
            yield list(found)
        if int(cursor) == 0:
            return


async def _scanned(link: RedisLink, command: str, key: str) -> AsyncIterator[tuple[bytes, Any]]:
    cursor = b"0"
    while True:
        cursor, found = await link.command(command, key, cursor, "COUNT", CHUNK)
        for pair in found.items() if isinstance(found, dict) else found:
            yield pair
        if int(cursor) == 0:
            return


def _heads(entries: Iterable[bytes]) -> Iterable[bytes]:
    return (entry[:FINGERPRINT] for entry in entries)


def _head(record: bytes) -> bytes:
    """The fingerprint in a packed {host, priority, entry, ...}. cmsgpack writes the bytes of an
    entry as text."""
    entry = bytes(_unpacked(record)[2])
    start = _TEXT_HEADS.get(entry[0], 1)
    return entry[start : start + FINGERPRINT]
