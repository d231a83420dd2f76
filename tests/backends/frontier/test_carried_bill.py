"""What requests to SQS cost a crawl, as `shoal status` tells it."""

from __future__ import annotations

import secrets
from functools import partial
from pathlib import Path

import pytest

from shoal.frontier.broker.carriers import sqs
from shoal.frontier.broker.carriers.sqs import REQUEST_PRICE, SqsCarrier
from shoal.frontier.broker.frontier import CarriedFrontier, Waits
from shoal.frontier.redis.windows import Window
from shoal.frontier.values import Control
from support.frontiers import CRAWL, Client, pages
from support.processes import Folder
from support.redis_servers import RedisServer
from support.sqs_servers import SqsServer
from support.until import until


async def is_worked_off(client: Client) -> bool:
    await client.work_off()
    return (await client.stats()).remaining == 0


async def test_requests_of_all_processes_are_counted_and_priced(
    tmp_path: Path,
    redis_server: RedisServer,
    sqs_server: SqsServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sqs, "POLL_S", 0)
    for name, value in sqs_server.environment.items():
        monkeypatch.setenv(name, value)
    address = f"sqs://eu-west-1/shoal-{secrets.token_hex(4)}"
    window, waits = Window(paced=2, fast=4, block=3), Waits(ack_s=0.05, enough=1.0)
    made = 0
    for first in (0, 50):
        carrier = SqsCarrier(address)
        frontier = CarriedFrontier(redis_server.url, carrier, window, waits=waits)
        client = Client(frontier, f"worker {first}", CRAWL)
        await client.start(*pages(50 + first))
        await client.control(Control.SEAL)
        await until("the end of the crawl", partial(is_worked_off, client))
        await frontier.close()
        made += carrier.requests
    folder = Folder(tmp_path, {"SHOAL_FRONTIER": address, "SHOAL_STATE": redis_server.url})
    told = folder.process("status", CRAWL, "--json").json()
    assert told["broker_requests"] == made > 30
    assert told["broker_cost"] == pytest.approx(made * REQUEST_PRICE)
    shown = folder.process("status", CRAWL)
    assert f"to the broker: {made:,} requests, about ${made * REQUEST_PRICE:.4f}" in shown.out
