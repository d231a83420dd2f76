"""The frontier with SQS and Redis: the part of the contract that is about tasks that travel, with
the usual window, and with the smallest one, so that nearly all of them do."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator

import pytest

from contract.frontier.adding import *  # noqa: F403
from contract.frontier.finishing import *  # noqa: F403
from contract.frontier.losing import *  # noqa: F403
from contract.frontier.ordering import *  # noqa: F403
from contract.frontier.steering import *  # noqa: F403
from shoal.frontier.broker.carriers import sqs
from shoal.frontier.broker.carriers.sqs import SqsCarrier
from shoal.frontier.redis.windows import Window
from support.carried_backend import SMALLEST, CarriedBackend
from support.frontiers import Backend, checked
from support.redis_servers import RedisServer
from support.sqs_servers import SqsServer

pytestmark = pytest.mark.rare


@pytest.fixture(params=[SMALLEST, Window()], ids=["1", "usual"])
async def backend(
    request: pytest.FixtureRequest,
    redis_server: RedisServer,
    sqs_server: SqsServer,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Backend]:
    monkeypatch.setattr(sqs, "POLL_S", 0)  # This server needs no waiting to find what it has.
    for name, value in sqs_server.environment.items():
        monkeypatch.setenv(name, value)
    url = f"sqs://eu-west-1/shoal-{secrets.token_hex(4)}"
    backend = CarriedBackend(redis_server.url, lambda: SqsCarrier(url), request.param)
    async with checked(backend):
        yield backend
