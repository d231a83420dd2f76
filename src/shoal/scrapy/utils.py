"""What projects import from scrapy-redis's module of the same name."""

from __future__ import annotations


def bytes_to_str(s: str | bytes, encoding: str = "utf-8") -> str:
    """Return a message as text."""
    return s.decode(encoding) if isinstance(s, bytes) else s
