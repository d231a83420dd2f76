"""A name server on this machine that answers as a test configures it.

    async with NameServer({"shop.example": ["1.2.3.4"]}) as server:
        resolver = Resolver([server.address])

A name that is not listed does not exist. For a name with `SILENT` instead of addresses there is
never an answer, for one with `BROKEN` the answer is an error.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import pytest

from shoal.fetch.http import pool
from shoal.fetch.http.dns import Resolver

SILENT = object()
BROKEN = object()

_TYPES = {socket.AF_INET: 1, socket.AF_INET6: 28}
_HEADER = struct.Struct(">HHHHHH")
_ANSWERED, _SERVER_FAILED, _NO_SUCH_NAME = 0x8180, 0x8182, 0x8183


class NameServer(asyncio.DatagramProtocol):
    """The server. `asked` lists the name of every query, in order."""

    def __init__(self, names: Mapping[str, Sequence[str] | object]) -> None:
        self.names = names
        self.asked: list[str] = []
        self.address = ""
        self._transport: asyncio.DatagramTransport

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        endpoint: Any = await loop.create_datagram_endpoint(
            lambda: self, local_addr=("127.0.0.1", 0)
        )
        self._transport = endpoint[0]
        host, port = self._transport.get_extra_info("sockname")
        self.address = f"{host}:{port}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._transport.close()
        await asyncio.sleep(0)

    def datagram_received(self, data: bytes, sender: Any) -> None:
        name, end = _name(data)
        (kind,) = struct.unpack_from(">H", data, end)
        self.asked.append(name)
        found = self.names.get(name)
        if found is SILENT:
            return
        question, query_id = data[12 : end + 4], data[:2]
        flags = _SERVER_FAILED if found is BROKEN else _ANSWERED if found else _NO_SUCH_NAME
        records = [_record(address, kind) for address in found] if isinstance(found, list) else []
        answers = [record for record in records if record]
        head = _HEADER.pack(int.from_bytes(query_id), flags, 1, len(answers), 0, 0)
        self._transport.sendto(head + question + b"".join(answers), sender)

    def is_used_by(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let fetchers that are created from now on use this server."""
        monkeypatch.setattr(pool, "Resolver", lambda: Resolver([self.address]))


def _name(data: bytes) -> tuple[str, int]:
    """The name in a query, and the position after it."""
    labels, place = [], 12
    while length := data[place]:
        labels.append(data[place + 1 : place + 1 + length].decode())
        place += 1 + length
    return ".".join(labels).lower(), place + 1


def _record(address: str, kind: int) -> bytes:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    if _TYPES[family] != kind:
        return b""
    packed = socket.inet_pton(family, address)
    # The name is a pointer to the one in the question, at byte 12. The TTL is 0: no caching.
    return b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 0, len(packed)) + packed
