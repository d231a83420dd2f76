"""Converts blocks between the form in the outbox and the form for carriers, and seals them.

The head of a block names its crawl, host and priority: a shared lane has blocks of many hosts, and
Redis may have lost the record of a block. On a carrier, the head stands before the first entry, so
that a block has as many entries as tasks. If the crawl has a key, a seal follows the other words of
the head: see carrier_record.py.
"""

from __future__ import annotations

import hmac
from struct import Struct, error
from typing import NamedTuple
from zlib import crc32

from shoal.frontier.broker.carrier import Block, host_lane, shared_lane
from shoal.frontier.redis.stats import Outside

SHARED_LANES = 64
"""How many shared lanes a crawl has. Windows with few blocks are spread over them."""

SEAL_BYTES = 16

_ID_BYTES = 8
_HEAD = Struct(">H")
_ENTRY = Struct(">I")


class Head(NamedTuple):
    """The crawl, host and priority of a block, and the kind of lane it is in."""

    crawl_id: str
    is_own: bool
    priority: int
    host: str

    def lane(self, crawl: str) -> str:
        """The lane of the block."""
        return lane_of(crawl, self.host, self.priority, is_own=self.is_own)

    @property
    def text(self) -> str:
        """As carried.lua writes it."""
        return f"{self.crawl_id} {int(self.is_own)} {self.priority} {self.host}"


class ReturnedBlock(NamedTuple):
    """A block that came back, with its head and seal separated from the entries."""

    id: bytes
    head: Head
    entries: list[bytes]
    seal: bytes = b""

    def is_sealed_by(self, key: bytes) -> bool:
        """Whether the crawl with this key has sent the block. Always true if the key is empty."""
        return not key or hmac.compare_digest(self.seal, _seal(key, self._packed()))

    def _packed(self) -> bytes:
        """The bytes that were in the outbox."""
        head = self.head.text.encode()
        parts = [self.id, _HEAD.pack(len(head)), head]
        for entry in self.entries:
            parts += (_ENTRY.pack(len(entry)), entry)
        return b"".join(parts)


def lane_of(crawl: str, host: str, priority: int, *, is_own: bool) -> str:
    """The lane for blocks of a host and priority: its own, or a shared one."""
    if is_own:
        return host_lane(crawl, host, priority)
    return shared_lane(crawl, crc32(f"{priority}:{host}".encode()) % SHARED_LANES)


def lane_of_outside(crawl: str, block: Outside) -> str:
    """The lane that holds a block, from its record in Redis."""
    return lane_of(crawl, block.host, block.priority, is_own=bool(block.is_own))


def shared_lanes(crawl: str) -> set[str]:
    """All shared lanes of a crawl."""
    return {shared_lane(crawl, number) for number in range(SHARED_LANES)}


def from_outbox(crawl: str, packed: bytes, key: bytes = b"") -> Block:
    """Convert a block that carried.lua has written. Seals it if there is a key."""
    start = _ID_BYTES + _HEAD.size
    end = start + _HEAD.unpack_from(packed, _ID_BYTES)[0]
    head, entries = packed[start:end], list[bytes]()
    at = end
    while at < len(packed):
        first = at + _ENTRY.size
        at = first + _ENTRY.unpack_from(packed, at)[0]
        entries.append(packed[first:at])
    lane = _read_head(head)[0].lane(crawl)
    if key:
        head += b" " + _seal(key, packed).hex().encode()
    entries[0] = _HEAD.pack(len(head)) + head + entries[0]
    return Block(id_of(packed), lane, entries)


def read_block(block: Block) -> ReturnedBlock | None:
    """Take apart a block that came back. None if Shoal has not written it: others may write to
    the broker as well."""
    try:
        first = block.entries[0]
        end = _HEAD.size + _HEAD.unpack_from(first)[0]
        head, seal = _read_head(first[_HEAD.size : end])
    except (IndexError, ValueError, error):
        return None
    entries = [first[end:], *block.entries[1:]]
    if min(map(len, entries)) <= _ID_BYTES:
        return None
    return ReturnedBlock(block.id.to_bytes(_ID_BYTES), head, entries, seal)


def id_of(packed: bytes) -> int:
    """The id of a block in the outbox."""
    return int.from_bytes(packed[:_ID_BYTES])


def _read_head(text: bytes) -> tuple[Head, bytes]:
    crawl_id, is_own, priority, host, *seal = text.decode().split(" ")
    return Head(crawl_id, is_own == "1", int(priority), host), bytes.fromhex("".join(seal))


def _seal(key: bytes, packed: bytes) -> bytes:
    """The seal of a block in its outbox form. It covers the id, the head and the entries."""
    return hmac.digest(key, packed, "sha256")[:SEAL_BYTES]
