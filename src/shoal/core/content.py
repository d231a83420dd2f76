"""The identity of content: when do two items, or two pages, say the same?"""

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
    """A number of 64 bits, signed, that stands for an item's fields, in whatever order."""
    with suppress(msgspec.DecodeError):  # What is no object is what its bytes are.
        data = _encode_sorted(_fields_of(data))
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), signed=True)
