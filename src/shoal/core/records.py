"""What several parts of Shoal hand to each other: items, robots.txt."""

from __future__ import annotations

import msgspec


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
