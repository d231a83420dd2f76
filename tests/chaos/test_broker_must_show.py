"""A crawl on RabbitMQ and Redis: workers and both servers are killed, and all pages are found."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path

import pytest

from shoal.demo.shop import Shop
from support.processes import Folder, is_alive, seeded_random
from support.rabbitmq_servers import RabbitServer
from support.rarely import first_then_rare
from support.redis_chaos import DURABLE, assert_adds_up
from support.redis_servers import RedisServer
from support.shops import CRAWL, assert_broken_are_dead, assert_found_everything, shop_urls
from support.sites import serving
from support.until import until_now

pytestmark = pytest.mark.alone

HOSTS, PRODUCTS = 4, 250
KILLS = 3
PACED = "100/s"
"""A rate, because the default window of a host without one has room for all its pages."""
REDIS, BROKER = "Redis", "RabbitMQ"


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    until_now("its end", lambda: not is_alive(pid))


def has_answered(shop: Shop, requests: int) -> bool:
    return len(shop.log) >= requests


@pytest.mark.parametrize(
    ("options", "rate"),
    first_then_rare(("?window=1&block=1", "none"), ("", PACED)),
    ids=["smallest window", "usual window"],
)
def test_workers_redis_and_the_broker_are_killed(tmp_path: Path, options: str, rate: str) -> None:
    random = seeded_random("kills of workers, of Redis and of RabbitMQ")
    moments = sorted(random.sample(range(10, HOSTS * PRODUCTS), KILLS + 2))
    # The broker is killed last: while it restarts, the crawl may end with the tasks in Redis.
    victims = [*random.sample([*map(str, range(KILLS)), REDIS], KILLS + 1), BROKER]
    with (
        RedisServer(tmp_path / "redis", *DURABLE) as server,
        RabbitServer(tmp_path / "rabbit") as broker,
        serving(Shop(hosts=HOSTS, products=PRODUCTS)) as shop,
    ):
        addresses = {"SHOAL_FRONTIER": f"{broker.url}{options}", "SHOAL_STATE": server.url}
        folder = Folder(tmp_path, {**addresses, **shop_urls(shop)})
        with folder.running(*CRAWL, "--rate", rate, "--workers", "3") as crawl:
            until_now("the beginning", partial(has_answered, shop, moments[0]))
            until_now("blocks that are outside", lambda: folder.stats("shop").outside)
            for moment, victim in zip(moments, victims, strict=True):
                until_now(f"request {moment}", partial(has_answered, shop, moment))
                if victim == REDIS:
                    server.kill()
                    server.start()
                elif victim == BROKER:
                    broker.kill()
                    broker.start()
                else:
                    kill(random.choice(until_now("a worker", crawl.workers)))
            ended = crawl.wait()
        assert ended.code == 3, ended
        stats = folder.stats("shop")
        assert_adds_up(stats)
        assert (stats.state, stats.remaining, stats.missing) == ("finished", 0, 0)
        assert_found_everything(folder, shop)
        assert_broken_are_dead(folder, shop)
        assert [name for name, *_ in broker.queues("name")] == [], "queues are left"
