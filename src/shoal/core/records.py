"""What several parts of Shoal hand to each other: items, robots.txt, fingerprints as numbers."""

from __future__ import annotations

import msgspec

from shoal.core.urls import FINGERPRINT_BYTES


class StoredItem(msgspec.Struct, kw_only=True):
    """One item as it is kept: unique on (crawl, kind, key), the newest scrape wins."""

    kind: str
    key: str
    data: bytes
    """The item's fields as a JSON object, without line breaks. Kept byte for byte."""
    url: str
    fingerprint: bytes
    """Of the task whose page it was read from."""
    scraped_at: float
    gone_at: float | None = None
    """When it was found to be gone, in what a store gives out. `save` does not look at it."""


class RejectedItem(msgspec.Struct, kw_only=True):
    """An item that did not pass validation, and why."""

    kind: str
    data: str
    """The item as far as it can be shown: JSON, or its repr."""
    reason: str
    url: str
    fingerprint: bytes
    scraped_at: float


class Robots(msgspec.Struct, frozen=True):
    """A host's robots.txt, as the fleet shares it."""

    text: str
    """Empty allows everything."""
    ttl_s: float
    """How long it holds before it is fetched again."""
    crawl_delay_s: float = 0.0
    error: str = ""
    """Why it could not be had. While this holds, nothing may be fetched from the host."""
    location: str = ""
    """Where a redirect says it is. Still unknown then: the next lease fetches it there."""
    hops: int = 0
    """Redirects so far."""


SHOWN_CHARACTERS = 10_000
"""How much of a rejected item is kept."""


def number_of(fingerprint: bytes) -> int:
    """A fingerprint as the signed integer of 64 bits that databases keep."""
    return int.from_bytes(fingerprint, signed=True)


def fingerprint_of(number: int) -> bytes:
    """The fingerprint that a database keeps as this signed integer."""
    return number.to_bytes(FINGERPRINT_BYTES, signed=True)
