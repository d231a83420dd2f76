"""The ids of exits, used instead of addresses in frontiers, logs and results."""

from __future__ import annotations

from base64 import b32encode
from hashlib import blake2b

from shoal.core.proxies import ProxyAddress

ID_DIGITS = 10
SESSION_CHARACTERS = 10
_KEY = b"shoal: exits"


def exit_id(pool: str, proxy: ProxyAddress) -> str:
    """The id of a proxy, the same on every worker. It depends on the whole address, as two accounts
    at one gateway are two exits."""
    parts = (proxy.scheme, proxy.host, str(proxy.port), proxy.user, proxy.password)
    return f"{pool}-{_hash('proxy', pool, *parts).hex()[:ID_DIGITS]}"


def session_id(pool: str, endpoint: str, country: str, index: int) -> str:
    """The id of one exit of a gateway."""
    digest = _hash("gateway", pool, endpoint, country, str(index))
    return f"{pool}-{digest.hex()[:ID_DIGITS]}"


def session_text(exit_id: str, session: int) -> str:
    """The value of {session} in a gateway's address: letters and digits. It is the same on every
    worker, so that all of them leave from the same address."""
    digest = _hash("session", exit_id, str(session))
    return b32encode(digest).decode().lower()[:SESSION_CHARACTERS]


def _hash(*parts: str) -> bytes:
    """A hash of the parts. As no part contains a NUL, different parts never give the same text."""
    whole = "\0".join(parts).encode("utf-8", "surrogateescape")
    return blake2b(whole, key=_KEY, digest_size=20).digest()
