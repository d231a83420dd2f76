"""Blocks as bytes: what every carrier keeps, whoever it is.

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
"""Of zlib's nine. Tasks are alike, so that more effort makes them hardly smaller."""
_FRAMING = 16
"""More than the bytes that msgpack needs for an entry, or for the list of them."""

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(list[bytes]).decode


class NoBlock(ValueError):
    """A message that is none of ours. The text says why."""


def encode(block: Block) -> bytes:
    """The block, without its lane: that is where it is put."""
    return _HEAD.pack(_MAGIC, block.id) + zlib.compress(_pack(block.entries), _LEVEL)


def decode(data: bytes, lane: str, most_bytes: int) -> Block:
    """The block that these bytes are, whose entries have at most so many bytes. Raises NoBlock."""
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
