"""kill -9 of workers and of their parent, at random moments of a crawl of the shop."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from shoal.demo.shop import Shop
from support.processes import Folder, Running, is_alive, seeded_random, wait_until
from support.shops import CRAWL, assert_broken_are_dead, assert_found_everything, shop_urls
from support.sites import serving

HOSTS, PRODUCTS = 2, 150
KILLS = 4
REQUESTS = 350
"""A crawl of the shop makes at least so many."""

COMMAND = (*CRAWL, "--workers", "3")
FOR_EVER = ("--lease-s", "3600")
"""A lease that is not given back at once is not given back within the test."""


@pytest.fixture
def shop() -> Iterator[Shop]:
    with serving(Shop(hosts=HOSTS, products=PRODUCTS, latency_s=0.01)) as shop:
        yield shop


def has_answered(shop: Shop, requests: int) -> bool:
    return len(shop.log) >= requests


def has_workers(crawl: Running, count: int) -> bool:
    return len(crawl.workers()) >= count


def test_a_killed_worker_is_replaced_and_loses_nothing(tmp_path: Path, shop: Shop) -> None:
    folder = Folder(tmp_path)
    random = seeded_random("kills of single workers")
    moments = sorted(random.sample(range(1, REQUESTS), KILLS))
    with folder.running(*COMMAND, *FOR_EVER, env=shop_urls(shop)) as crawl:
        for moment in moments:
            wait_until(partial(has_answered, shop, moment), f"request {moment}")
            wait_until(partial(has_workers, crawl, 3), "three workers")
            os.kill(random.choice(crawl.workers()), signal.SIGKILL)
        ended = crawl.wait()
    assert ended.code == 3, ended
    assert ended.err.count("a worker died (signal SIGKILL); starting another") == KILLS
    assert_found_everything(folder, shop)
    assert_broken_are_dead(folder, shop)
    assert folder.status("shop")["leased"] == 0


def test_workers_whose_parent_was_killed_hand_back_their_work(tmp_path: Path, shop: Shop) -> None:
    folder = Folder(tmp_path)
    moment = seeded_random("kill of the parent").randrange(1, REQUESTS)
    with folder.running(*COMMAND, *FOR_EVER, env=shop_urls(shop)) as crawl:
        wait_until(partial(has_answered, shop, moment), f"request {moment}")
        wait_until(partial(has_workers, crawl, 3), "three workers")
        workers = crawl.workers()
        crawl.send(signal.SIGKILL)
        wait_until(lambda: not any(map(is_alive, workers)), "the end of the workers")
        assert "Traceback" not in crawl.err
    stats = folder.status("shop")
    assert (stats["state"], stats["leased"], stats["lost"]) == ("running", 0, 0)
    assert folder.shoal(*COMMAND, *FOR_EVER, env=shop_urls(shop)).code == 3
    assert_found_everything(folder, shop)
    assert_broken_are_dead(folder, shop)
