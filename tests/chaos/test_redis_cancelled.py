"""Calls to Redis end when they are cancelled, at any moment. Otherwise a worker that waits for one
would never end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from itertools import count

import pytest

from shoal.config import Rules
from shoal.frontier import frontier_at
from shoal.frontier.port import Frontier
from shoal.frontier.values import Ask, Control
from support.redis_servers import RedisServer

CRAWL = "crawl"
CALLS: dict[str, Callable[[Frontier], Awaitable[object]]] = {
    "run": lambda frontier: frontier.control(CRAWL, Control.SEAL),
    "together": lambda frontier: frontier.exchange(CRAWL, [], Ask("worker", 1)),
    "command": lambda frontier: frontier.robots(CRAWL, "a.example"),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with RedisServer(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.mark.parametrize("name", CALLS)
async def test_a_cancelled_call_ends(server: RedisServer, name: str) -> None:
    async with frontier_at(server.url) as frontier:
        await frontier.start(CRAWL, Rules())
    for steps in count():
        async with frontier_at(server.url) as frontier:
            call = asyncio.ensure_future(CALLS[name](frontier))
            for _ in range(steps):
                await asyncio.sleep(0)
            if call.done():
                break
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
    assert steps > 10, "there were moments to be cancelled in"
