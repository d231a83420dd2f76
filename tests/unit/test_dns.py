"""Name lookups."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from shoal.fetch import dns
from shoal.fetch.dns import Resolver
from support.until import LIMIT_S, in_time

FOUND = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("1.1.1.1", 80))]


@pytest.fixture
async def resolver() -> AsyncIterator[Resolver]:
    resolver = Resolver()
    yield resolver
    resolver.close()


async def test_resolves(resolver: Resolver) -> None:
    found = await resolver.resolve("localhost", 80)
    assert {info[4][:2] for info in found} <= {("127.0.0.1", 80), ("::1", 80)}


async def test_an_answer_is_shared_and_remembered_for_a_time(
    resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def look_up(host: str, *arguments: Any) -> list[Any]:
        asked.append(host)
        return FOUND

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    assert (
        await asyncio.gather(*(resolver.resolve("a.example", 80) for _ in range(5))) == [FOUND] * 5
    )
    await resolver.resolve("a.example", 80)
    assert asked == ["a.example"]
    await resolver.resolve("b.example", 80)
    monkeypatch.setattr(dns, "monotonic", lambda: 1e12)
    await resolver.resolve("a.example", 80)
    assert asked == ["a.example", "b.example", "a.example"]


async def test_a_failure_is_not_remembered(
    resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[Any] = [socket.gaierror(socket.EAI_AGAIN, "not now"), FOUND]

    def look_up(host: str, *arguments: Any) -> list[Any]:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return list(answer)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    with pytest.raises(socket.gaierror):
        await resolver.resolve("a.example", 80)
    assert await resolver.resolve("a.example", 80) == FOUND


async def test_who_gives_up_takes_the_answer_from_nobody(
    resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = threading.Event()

    def look_up(host: str, *arguments: Any) -> list[Any]:
        released.wait(LIMIT_S)
        return FOUND

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    first, second = (asyncio.create_task(resolver.resolve("a.example", 80)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    released.set()
    assert await in_time("the answer", second) == FOUND


async def test_a_name_server_that_hangs_delays_nobody_else(
    resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = threading.Event()

    def look_up(host: str, *arguments: Any) -> list[Any]:
        if host.startswith("slow"):
            released.wait(LIMIT_S)
        return FOUND

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    slow = [asyncio.create_task(resolver.resolve(f"slow{n}.example", 80)) for n in range(16)]
    try:
        assert await in_time("the answer", resolver.resolve("fast.example", 80)) == FOUND
        assert not any(task.done() for task in slow)
    finally:
        released.set()
    await in_time("the slow ones", asyncio.gather(*slow))
