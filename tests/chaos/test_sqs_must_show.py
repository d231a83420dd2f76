"""A crawl on SQS and Redis: workers and Redis are killed, SQS is out of reach for a while, and all
pages are found.

The test's SQS server, unlike SQS itself, loses its messages when it is killed. So only the network
to it is cut.
"""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path

import pytest

from shoal.demo.shop import Shop
from shoal.drivers.sqs import SqsLink, sqs_address
from shoal.frontier.broker.carriers.sqs import HELD_S
from shoal.runtime.eventloop import run
from support.processes import Folder, is_alive, seeded_random
from support.redis_chaos import DURABLE, assert_adds_up
from support.redis_servers import RedisServer
from support.shops import CRAWL, assert_broken_are_dead, assert_found_everything, shop_urls
from support.sites import serving
from support.sqs_servers import SqsServer
from support.tcp_proxy import TcpProxy
from support.until import LIMIT_S, until_now

pytestmark = [pytest.mark.alone, pytest.mark.rare]

HOSTS, PRODUCTS = 2, 200
KILLS = 3
PACED = "50/s"
"""A rate, because the default window of a host without one has room for all its pages."""
PREFIX = "chaos"
REDIS, SQS = "Redis", "SQS"


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    until_now("its end", lambda: not is_alive(pid))


def has_answered(shop: Shop, requests: int) -> bool:
    return len(shop.log) >= requests


@pytest.mark.parametrize(
    ("options", "rate"),
    [("?window=1&block=1", "none"), ("", PACED)],
    ids=["smallest window", "usual window"],
)
def test_workers_and_redis_are_killed_and_sqs_is_away(
    tmp_path: Path, sqs_server: SqsServer, monkeypatch: pytest.MonkeyPatch, options: str, rate: str
) -> None:
    random = seeded_random("kills of workers and of Redis, and a network that is cut")
    moments = sorted(random.sample(range(10, HOSTS * PRODUCTS), KILLS + 2))
    victims = random.sample([*map(str, range(KILLS)), REDIS, SQS], KILLS + 2)
    with (
        RedisServer(tmp_path / "redis", *DURABLE) as server,
        TcpProxy(sqs_server.port) as network,
        serving(Shop(hosts=HOSTS, products=PRODUCTS)) as shop,
    ):
        login = {
            **sqs_server.environment,
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{network.port}",
        }
        for name, value in login.items():
            monkeypatch.setenv(name, value)
        addresses = {
            "SHOAL_FRONTIER": f"sqs://us-east-1/{PREFIX}{options}",
            "SHOAL_STATE": server.url,
        }
        folder = Folder(tmp_path, {**addresses, **shop_urls(shop)})
        with folder.running(*CRAWL, "--rate", rate, "--workers", "3") as crawl:
            until_now("the beginning", partial(has_answered, shop, moments[0]))
            until_now("blocks that are outside", lambda: folder.stats("shop").outside)
            for moment, victim in zip(moments, victims, strict=True):
                until_now(f"request {moment}", partial(has_answered, shop, moment))
                if victim == REDIS:
                    server.kill()
                    server.start()
                elif victim == SQS:
                    network.cut()
                    until_now("a word of it", lambda: "waiting for the broker" in crawl.err)
                    network.heal()
                else:
                    kill(random.choice(until_now("a worker", crawl.workers)))
            # Only after this time does SQS deliver the messages of a dead worker to others.
            until_now("the end of the crawl", crawl.has_ended, 2 * HELD_S + LIMIT_S)
            ended = crawl.wait()
        assert ended.code == 3, ended
        stats = folder.stats("shop")
        assert_adds_up(stats)
        assert (stats.state, stats.remaining, stats.missing) == ("finished", 0, 0)
        assert stats.broker_requests > 0
        assert_found_everything(folder, shop)
        assert_broken_are_dead(folder, shop)
        assert run(queues()) == [], "queues are left"


async def queues() -> list[str]:
    link = SqsLink(sqs_address(f"sqs://us-east-1/{PREFIX}"))
    try:
        answer = await link.call("list_queues", QueueNamePrefix=PREFIX)
    finally:
        await link.close()
    left: list[str] = answer.get("QueueUrls", [])
    return left
