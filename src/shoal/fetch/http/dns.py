"""Looks up host names with c-ares, and remembers the answers.

A name server that does not answer must not delay other look-ups. c-ares looks up any number of
names at once over one socket; the system's resolver would block one thread for each.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from time import monotonic
from typing import Any

import aiodns
import pycares
from aiodns.error import DNSError

from shoal.errors import UnknownHost

LOOKUP_S = 5.0
"""How long one look-up may take."""

FIRST_TRY_S = 1.0
TRIES = 6
"""Enough tries that c-ares does not give up before `LOOKUP_S` is over. It waits a quarter of a
second for a server known to be quick, then twice as long with every try."""

REMEMBERED_S = 60.0
MAX_REMEMBERED = 10_000

_NOT_FOUND = (pycares.errno.ARES_ENOTFOUND, pycares.errno.ARES_ENODATA)

AddressInfo = tuple[int, int, int, str, tuple[Any, ...]]
"""An address as getaddrinfo gives it: family, type, protocol, name, socket address."""


class Resolver:
    """Resolves names. Concurrent look-ups of the same name share one query."""

    def __init__(self, nameservers: Sequence[str] = ()) -> None:
        """`nameservers` (like `127.0.0.1:53`) are asked instead of the system's."""
        self._ares = aiodns.DNSResolver(
            nameservers, asyncio.get_running_loop(), timeout=FIRST_TRY_S, tries=TRIES
        )
        self._known: dict[tuple[str, int], tuple[float, list[AddressInfo]]] = {}
        self._asked: dict[tuple[str, int], asyncio.Future[pycares.AddrInfoResult]] = {}

    async def resolve(self, host: str, port: int) -> list[AddressInfo]:
        """All addresses of a name. Raises UnknownHost if there are none, and OSError if this
        machine is unable to ask."""
        key = host, port
        until, found = self._known.get(key, (0.0, []))
        if monotonic() < until:
            return found
        found = await self._look_up(key)
        if len(self._known) >= MAX_REMEMBERED:
            self._known.clear()
        self._known[key] = monotonic() + REMEMBERED_S, found
        return found

    async def close(self) -> None:
        """End all look-ups."""
        await self._ares.close()

    async def _look_up(self, key: tuple[str, int]) -> list[AddressInfo]:
        try:
            async with asyncio.timeout(LOOKUP_S):
                answer = await asyncio.shield(self._asked.get(key) or self._ask(key))
        except TimeoutError:
            raise UnknownHost(f"DNS: no answer within {LOOKUP_S:g} s") from None
        except DNSError as error:
            code, words = error.args
            if code == pycares.errno.ARES_ECONNREFUSED:
                socket.socket().close()  # Raises OSError if the machine is out of sockets.
            words = "name not found" if code in _NOT_FOUND else words.lower()
            raise UnknownHost(f"DNS: {words}") from None
        return [_address_info(node) for node in answer.nodes]

    def _ask(self, key: tuple[str, int]) -> asyncio.Future[pycares.AddrInfoResult]:
        host, port = key
        asked = self._ares.getaddrinfo(
            host, port=port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
        )
        self._asked[key] = asked
        asked.add_done_callback(lambda asked: self._answered(key, asked))
        return asked

    def _answered(self, key: tuple[str, int], asked: asyncio.Future[Any]) -> None:
        self._asked.pop(key, None)
        if not asked.cancelled():
            asked.exception()  # Otherwise asyncio logs that the exception was never retrieved.


def _address_info(node: pycares.AddrInfoNode) -> AddressInfo:
    address, *rest = node.addr
    return node.family, node.socktype, node.protocol, "", (address.decode(), *rest)
