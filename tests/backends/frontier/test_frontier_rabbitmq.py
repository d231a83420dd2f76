"""The frontier with RabbitMQ and Redis: the contract, with the usual window, and with the smallest
one, so that nearly all tasks travel."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from contract.frontier_suite import *  # noqa: F403
from shoal.frontier.broker.carriers.rabbit import RabbitCarrier
from shoal.frontier.redis.windows import Window
from support.carried_backend import SMALLEST, CarriedBackend
from support.frontiers import Backend, checked
from support.rabbitmq_servers import RabbitServer
from support.redis_servers import RedisServer

pytestmark = pytest.mark.rare


@pytest.fixture(params=[SMALLEST, Window()], ids=["1", "usual"])
async def backend(
    request: pytest.FixtureRequest, redis_server: RedisServer, rabbitmq_server: RabbitServer
) -> AsyncIterator[Backend]:
    # Other tests have left queues, of crawls with other ids: their blocks are thrown away.
    url = f"{rabbitmq_server.url}?queues=classic"
    backend = CarriedBackend(redis_server.url, lambda: RabbitCarrier(url), request.param)
    async with checked(backend):
        yield backend
