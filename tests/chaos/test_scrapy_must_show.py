"""A Scrapy project with a plain spider is killed three times, and every item arrives."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from shoal.demo.shop import Shop
from support.processes import seeded_random
from support.redis_chaos import DURABLE, assert_adds_up
from support.redis_servers import RedisServer
from support.scrapy_projects import ADDON, EACH_VERSION, VERSIONS, Project, closing_reason
from support.scrapy_spiders import SHOP
from support.sites import serving
from support.until import until_now

HOSTS, PRODUCTS = 2, 300
KILLS = 3


def has_answered(shop: Shop, requests: int) -> bool:
    return len(shop.log) >= requests


@pytest.mark.parametrize("version", EACH_VERSION)
def test_a_plain_spider_is_killed_three_times(tmp_path: Path, version: str) -> None:
    random = seeded_random(f"kills of Scrapy, the {version}")
    moments = sorted(random.sample(range(1, HOSTS * PRODUCTS * 3 // 4), KILLS))
    with (
        RedisServer(tmp_path / "redis", *DURABLE) as server,
        serving(Shop(hosts=HOSTS, products=PRODUCTS, messy=False)) as shop,
    ):
        settings = {**ADDON, "REDIS_URL": server.url}
        project = Project(
            tmp_path / "machine", SHOP, settings, sites=shop.urls, scrapy=VERSIONS[version]
        )
        for moment in moments:
            with project.crawling("shop") as crawl:
                until_now(f"request {moment}", partial(has_answered, shop, moment))
                crawl.kill_all()
        ended = project.crawl("shop")
        stats = project.queue.stats("shop")
    found = {
        item["sku"]: {"title": item["title"], "price": item["price"]} for item in project.items()
    }
    assert found == shop.expected_items()
    assert closing_reason(ended.err) == "finished"
    assert_adds_up(stats)
    assert (stats.state, stats.remaining, stats.dead) == ("finished", 0, len(shop.broken()))
    assert len(project.items()) - len(found) <= stats.lost
