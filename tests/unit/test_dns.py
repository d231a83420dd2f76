"""Name lookups."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import Any

import pytest

from shoal.fetch.dns import ThreadedResolver


async def test_resolves() -> None:
    resolver = ThreadedResolver()
    found = await resolver.resolve("localhost", 80, socket.AF_UNSPEC)
    assert {result["host"] for result in found} <= {"127.0.0.1", "::1"}
    assert {(result["hostname"], result["port"]) for result in found} == {("localhost", 80)}
    await resolver.close()


async def test_a_name_server_that_hangs_delays_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()

    def look_up(host: str, *arguments: Any) -> list[Any]:
        if host == "slow.example":
            released.wait()
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("1.1.1.1", 80))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    resolver = ThreadedResolver()
    slow = [asyncio.create_task(resolver.resolve("slow.example", 80)) for _ in range(16)]
    try:
        assert [found["host"] for found in await resolver.resolve("fast.example", 80)] == [
            "1.1.1.1"
        ]
        assert not any(task.done() for task in slow)
    finally:
        released.set()
    await asyncio.gather(*slow)
    await resolver.close()
