"""The address of a proxy. It never shows what may be a secret: a key is often the user name."""

from __future__ import annotations

from typing import Literal

import msgspec

ProxyScheme = Literal["http", "socks5", "bind"]
"""`bind` is no proxy: an address of this machine that requests leave from."""


class ProxyAddress(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """Where a proxy is, and how it lets us in."""

    scheme: ProxyScheme
    host: str
    port: int = 0
    user: str = ""
    password: str = ""

    def __repr__(self) -> str:
        """Without all that is before the host."""
        secret = "***@" if self.user or self.password else ""
        port = f":{self.port}" if self.port else ""
        return f"{self.scheme}://{secret}{self.host}{port}"

    __str__ = __repr__
