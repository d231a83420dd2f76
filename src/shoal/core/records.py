"""Records that several parts of Shoal exchange: items, rejected items, robots.txt."""

from __future__ import annotations

import msgspec


class StoredItem(msgspec.Struct, kw_only=True):
    """One item as it is stored: unique on (crawl, kind, key), the newest scrape wins."""

    kind: str
    key: str
    data: bytes
    """The item's fields as a JSON object without line breaks. Kept byte for byte."""
    url: str
    fingerprint: bytes
    """The fingerprint of the task whose page the item was read from."""
    scraped_at: float
    gone_at: float | None = None
    """When the item was found to be gone. Set in items read from a store; `save` ignores it."""


class RejectedItem(msgspec.Struct, kw_only=True):
    """An item that failed validation, and why."""

    kind: str
    data: str
    """The item as JSON if it has such a form, otherwise its repr."""
    reason: str
    url: str
    fingerprint: bytes
    scraped_at: float


class Robots(msgspec.Struct, frozen=True):
    """A host's robots.txt as the fleet shares it."""

    text: str
    """Its content. Empty allows everything."""
    ttl_s: float
    """How long it is valid before it is fetched again."""
    crawl_delay_s: float = 0.0
    error: str = ""
    """Why it could not be fetched. Until `ttl_s` is over, nothing may be fetched from the host."""
    location: str = ""
    """Where a redirect says that the file is. It is unknown until the next lease fetches it
    there."""
    hops: int = 0
    """Redirects followed so far."""


SHOWN_CHARACTERS = 10_000
"""How many characters of a rejected item are kept."""
