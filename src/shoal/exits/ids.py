"""The ids of exits: all that frontiers, logs and results ever see of an address."""

from __future__ import annotations

from base64 import b32encode
from hashlib import blake2b

from shoal.core.proxies import ProxyAddress

ID_DIGITS = 10
SESSION_CHARACTERS = 10
_KEY = b"shoal: exits"


def exit_id(pool: str, proxy: ProxyAddress) -> str:
    """The id of a proxy: of its whole address, for two accounts at one gateway are two exits. The
    same on every worker."""
    parts = (proxy.scheme, proxy.host, str(proxy.port), proxy.user, proxy.password)
    return f"{pool}-{_hash('proxy', pool, *parts).hex()[:ID_DIGITS]}"


def session_id(pool: str, endpoint: str, country: str, index: int) -> str:
    """The id of one of a gateway's exits."""
    digest = _hash("gateway", pool, endpoint, country, str(index))
    return f"{pool}-{digest.hex()[:ID_DIGITS]}"


def session_text(exit_id: str, session: int) -> str:
    """What stands for {session} in a gateway's address: letters and digits, and the same on every
    worker, so that they all leave from the one address."""
    digest = _hash("session", exit_id, str(session))
    return b32encode(digest).decode().lower()[:SESSION_CHARACTERS]


def _hash(*parts: str) -> bytes:
    """No part can be mistaken for the end of another: none has a NUL in it."""
    whole = "\0".join(parts).encode("utf-8", "surrogateescape")
    return blake2b(whole, key=_KEY, digest_size=20).digest()
