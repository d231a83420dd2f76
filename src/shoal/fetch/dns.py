"""Looking up names with the system's resolver, in threads of its own.

Event loops have few threads for this (uvloop lets two lookups run at a time), and a name server
that does not answer holds one for many seconds. Other hosts must not wait for it.
"""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor

from aiohttp.abc import AbstractResolver, ResolveResult

THREADS = 32


class ThreadedResolver(AbstractResolver):
    """Resolves names with getaddrinfo."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="dns")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """All addresses of a name. Raises socket.gaierror if there are none."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, _look_up, host, port, family)

    async def close(self) -> None:
        """Let the threads end. Does not wait for lookups that hang."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _look_up(host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
    found = socket.getaddrinfo(
        host, port, family, socket.SOCK_STREAM, socket.IPPROTO_TCP, socket.AI_ADDRCONFIG
    )
    return [
        ResolveResult(
            hostname=host,
            host=str(address[0]),
            port=port,
            family=kind,
            proto=protocol,
            flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
        )
        for kind, _, protocol, _, address in found
    ]
