"""A crawl that publishes to RabbitMQ: workers and the broker are killed, and every stored item is
published."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path

import pytest

from shoal.demo.shop import Shop
from support.processes import Folder, is_alive, seeded_random
from support.publishing import told
from support.rabbitmq_servers import RabbitServer
from support.shops import CRAWL, assert_broken_are_dead, assert_found_everything, shop_urls
from support.sites import serving
from support.until import until_now

pytestmark = [pytest.mark.alone, pytest.mark.rare]

HOSTS, PRODUCTS = 3, 150
KILLS = 2


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    until_now("its end", lambda: not is_alive(pid))


def has_answered(shop: Shop, requests: int) -> bool:
    return len(shop.log) >= requests


def test_workers_and_the_broker_are_killed(tmp_path: Path) -> None:
    random = seeded_random("kills of workers that publish, and of RabbitMQ")
    moments = sorted(random.sample(range(10, HOSTS * PRODUCTS * 2 // 3), KILLS + 1))
    broker_at = random.choice(moments)
    with (
        RabbitServer(tmp_path / "rabbit") as broker,
        serving(Shop(hosts=HOSTS, products=PRODUCTS)) as shop,
    ):
        address = broker.url.removesuffix("/%2F")
        folder = Folder(tmp_path, {"SHOAL_PUBLISH": address, **shop_urls(shop)})
        with folder.running(*CRAWL, "--workers", "3") as crawl:
            for moment in moments:
                until_now(f"request {moment}", partial(has_answered, shop, moment))
                if moment == broker_at:
                    broker.kill()
                    until_now("workers that wait", lambda: "waiting for the broker" in crawl.err)
                    broker.start()
                else:
                    kill(random.choice(until_now("a worker", crawl.workers)))
            ended = crawl.wait()
        assert ended.code == 3, ended
        assert_found_everything(folder, shop)
        assert_broken_are_dead(folder, shop)
        items = told(f"{address}/shoal.shop.items")
        published = {(item["_key"], item["_scraped_at"], item["price"]) for item in items}
        stored = {(i["_key"], i["_scraped_at"], i["price"]) for i in folder.export("shop")}
        assert stored <= published
        dead = {one["url"] for one in told(f"{address}/shoal.shop.dead")}
        assert len(dead) == len(shop.broken())
        ends = told(f"{address}/shoal.shop.finished")
        assert {end["counters"]["done"] for end in ends} == {folder.stats("shop").done}
        print(f"{len(stored)} items stored, {len(items)} published, {len(ends)} ends")
