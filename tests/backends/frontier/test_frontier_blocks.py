"""The frontier with blocks in Redis itself: the contract, with the usual window, and with the
smallest one, so that nearly all tasks travel."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from contract.frontier_suite import *  # noqa: F403
from shoal.frontier.broker.carriers.redis import RedisCarrier
from shoal.frontier.redis.windows import Window
from support.carried_backend import SMALLEST, CarriedBackend
from support.frontiers import Backend, checked
from support.redis_servers import RedisServer

pytestmark = pytest.mark.rare


@pytest.fixture(params=[SMALLEST, Window()], ids=["1", "usual"])
async def backend(
    request: pytest.FixtureRequest, redis_server: RedisServer
) -> AsyncIterator[Backend]:
    url = redis_server.url
    async with checked(CarriedBackend(url, lambda: RedisCarrier(url), request.param)) as backend:
        yield backend
