"""Encodes blocks as bytes, the same for every carrier:

S1 | id, 8 bytes | zlib of the entries, as msgpack
"""

from __future__ import annotations

import struct
import zlib

import msgspec

from shoal.frontier.broker.carrier import MAX_ENTRIES, Block

_HEAD = struct.Struct(">2sQ")
_MAGIC = b"S1"
_LEVEL = 3
"""The level of zlib. Tasks resemble each other, so higher levels save hardly any more."""
_FRAMING = 16
"""An upper bound for the bytes that msgpack adds to an entry, and to the list of entries."""

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(list[bytes]).decode


class NoBlock(ValueError):
    """The message is not a block. The text says why."""


def encode(block: Block) -> bytes:
    """Encode a block. Its lane is not part of it: that is the queue it is put in."""
    return _HEAD.pack(_MAGIC, block.id) + zlib.compress(_pack(block.entries), _LEVEL)


def decode(data: bytes, lane: str, most_bytes: int) -> Block:
    """Decode a block whose entries have at most `most_bytes` in all. Raises NoBlock."""
    try:
        magic, number = _HEAD.unpack_from(data)
        if magic != _MAGIC:
            raise NoBlock("it does not begin as one")
        return Block(number, lane, _unpack(_inflated(data[_HEAD.size :], most_bytes)))
    except struct.error:
        raise NoBlock("it is too short") from None
    except (zlib.error, msgspec.MsgspecError) as error:
        raise NoBlock(str(error)) from None


def _inflated(data: bytes, most_bytes: int) -> bytes:
    inflating = zlib.decompressobj()
    packed = inflating.decompress(data, most_bytes + _FRAMING * (MAX_ENTRIES + 1))
    if not inflating.eof:
        raise NoBlock("it is cut off, or larger than a block can be")
    return packed
