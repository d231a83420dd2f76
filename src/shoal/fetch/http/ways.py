"""Where connections lead (`Origin`), and how they get there (`Way`)."""

from __future__ import annotations

import msgspec

from shoal.fetch.port import Route


class Origin(msgspec.Struct, frozen=True, cache_hash=True):
    """The server that a connection leads to."""

    is_tls: bool
    host: str
    port: int

    def written(self, host: str = "", *, with_port: bool = True) -> str:
        """`shop.example:80` or `[2001:db8::1]:80`. `host`, an address, replaces the name."""
        host = host or self.host
        shown = f"[{host}]" if ":" in host else host
        return f"{shown}:{self.port}" if with_port else shown


Way = tuple[Route, Origin]
"""How a connection gets to its origin, and which origin. A connection serves only one way."""
