"""The shop that the examples of the documentation crawl."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shoal.demo.shop import Shop
from support.redis_servers import RedisServer
from support.sites import serving

PRODUCTS = 21
"""Two pages of catalogue with a broken, a missing and some flaky and moved products, but none that
answers 503: that would slow the host down, and the tests with it."""


@pytest.fixture(scope="session")
def open_shop() -> Iterator[Shop]:
    """A shop that is open."""
    with serving(Shop(hosts=1, products=PRODUCTS)) as shop:
        yield shop


@pytest.fixture
def shop(open_shop: Shop) -> str:
    """Where the shop is, without a slash at the end."""
    return f"http://127.0.0.1:{open_shop.ports[0]}"


@pytest.fixture(scope="session")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """The Redis that the documentation calls queue-host."""
    folder = tmp_path_factory.mktemp("redis")
    with RedisServer(folder, "--appendonly", "yes") as server:
        yield server


@pytest.fixture
def redis_port(redis: RedisServer) -> int:
    """Where it is; it is empty."""
    redis.client().flushall()
    return redis.port
