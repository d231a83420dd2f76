"""The shop: four hosts with 300 products each, messy links, flaky, gone, moved and broken pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from shoal.demo.shop import Shop
from support.processes import Folder, seeded_random
from support.shops import (
    CRAWL,
    FORBIDDEN,
    ROBOTS,
    assert_broken_are_dead,
    assert_found_everything,
    fetches,
    needed_fetches,
    shop_urls,
)
from support.sites import serving
from support.until import until_now

HOSTS, PRODUCTS = 4, 300
KILLS = 3


@pytest.fixture
def shop() -> Iterator[Shop]:
    with serving(Shop(hosts=HOSTS, products=PRODUCTS)) as shop:
        yield shop


def test_every_product_is_found_once(tmp_path: Path, shop: Shop) -> None:
    folder = Folder(tmp_path)
    ended = folder.shoal(*CRAWL, "--workers", "3", env=shop_urls(shop))
    assert ended.code == 3, ended
    assert_found_everything(folder, shop)
    assert_broken_are_dead(folder, shop)
    stats = folder.stats("shop")
    assert stats.dead == len(shop.broken())
    assert stats.retries == len(shop.flaky())
    asked = fetches(shop.log)
    needed = needed_fetches(shop)
    assert {page: asked[page] for page in needed} == needed
    others = asked - needed
    assert set(others.values()) == {1}  # Lists, front pages and robots.txt.
    assert [others[port, ROBOTS] for port in shop.ports] == [1] * HOSTS
    assert not [page for _, page in asked if page.startswith(FORBIDDEN)]


@pytest.mark.rare
def test_it_is_the_same_after_three_kills_of_everything(tmp_path: Path, shop: Shop) -> None:
    folder = Folder(tmp_path)
    command = (*CRAWL, "--workers", "3")
    random = seeded_random("kills of the whole group")
    held = 0
    for kill in range(KILLS):
        # Any moment of a run of about 1,500 requests; each of the three in its own part.
        moment = random.randrange(400 * kill + 1, 400 * (kill + 1))
        with folder.running(*command, env=shop_urls(shop)) as crawl:
            until_now(f"request {moment}", partial(_has_answered, shop, moment))
            crawl.kill_all()
        held += folder.stats("shop").leased
    ended = folder.shoal(*command, env=shop_urls(shop))
    assert ended.code == 3, ended
    assert_found_everything(folder, shop)
    assert_broken_are_dead(folder, shop)
    assert folder.stats("shop").lost == held
    asked, needed = fetches(shop.log), needed_fetches(shop)
    again = asked - needed - Counter(asked.keys() - needed.keys())
    assert again.total() <= held
    assert max(again.values(), default=0) <= KILLS
    assert not [page for _, page in asked if page.startswith(FORBIDDEN)]


def _has_answered(shop: Shop, requests: int) -> bool:
    return len(shop.log) >= requests
