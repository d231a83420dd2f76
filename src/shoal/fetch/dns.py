"""Looking up names with the system's resolver, in threads of its own, and remembering the answer.

Event loops have few threads for this (uvloop lets two lookups run at a time), and a name server
that does not answer holds one for many seconds. Other hosts must not wait for it.
"""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Any

THREADS = 32
REMEMBERED_S = 60.0
MAX_REMEMBERED = 10_000

AddressInfo = tuple[int, int, int, str, tuple[Any, ...]]
"""One of the answers of getaddrinfo: family, type, protocol, name, socket address."""


class Resolver:
    """Resolves names with getaddrinfo. Those who ask for the same name at once share an answer."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="dns")
        self._known: dict[tuple[str, int], tuple[float, list[AddressInfo]]] = {}
        self._asked: dict[tuple[str, int], asyncio.Future[list[AddressInfo]]] = {}

    async def resolve(self, host: str, port: int) -> list[AddressInfo]:
        """All addresses of a name. Raises socket.gaierror if there are none."""
        key = host, port
        until, found = self._known.get(key, (0.0, []))
        if monotonic() < until:
            return found
        if key not in self._asked:
            loop = asyncio.get_running_loop()
            lookup = loop.run_in_executor(self._threads, _look_up, host, port)
            self._asked[key] = lookup
            lookup.add_done_callback(lambda _: self._asked.pop(key, None))
        found = await asyncio.shield(self._asked[key])
        if len(self._known) >= MAX_REMEMBERED:
            self._known.clear()
        self._known[key] = monotonic() + REMEMBERED_S, found
        return found

    def close(self) -> None:
        """Let the threads end. Does not wait for lookups that hang."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _look_up(host: str, port: int) -> list[AddressInfo]:
    found = socket.getaddrinfo(
        *(host, port, socket.AF_UNSPEC, socket.SOCK_STREAM),
        *(socket.IPPROTO_TCP, socket.AI_ADDRCONFIG),
    )
    return [*found]
