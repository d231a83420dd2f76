"""The identity of content: whether two items, or two pages, say the same."""

from __future__ import annotations

import hashlib
from contextlib import suppress

import msgspec

PAGE_DIGEST_BYTES = 16

_fields_of = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode


def page_digest(body: bytes) -> bytes:
    """The digest of a page's body: the first half of its SHA-256. Archives name bodies by it."""
    return hashlib.sha256(body).digest()[:PAGE_DIGEST_BYTES]


def item_content(data: bytes) -> int:
    """A signed 64-bit number that identifies an item's fields, whatever their order."""
    with suppress(msgspec.DecodeError):  # Data that is no object is compared byte by byte.
        data = _encode_sorted(_fields_of(data))
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), signed=True)
