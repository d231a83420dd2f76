"""A fleet on Redis finds all pages although workers are killed, and keeps the rate exactly."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain
from pathlib import Path

import pytest

from shoal.core.policy import parse_rate
from shoal.demo.shop import Shop
from support.crashes import has_crashed
from support.links import numbered_pages, put_spider
from support.processes import Folder, is_alive, seeded_random
from support.redis_chaos import (
    DURABLE,
    WAITING,
    all_hits,
    assert_adds_up,
    assert_links_are_complete,
    assert_losses_explain_repeats,
    assert_rate_holds,
)
from support.redis_servers import RedisServer
from support.shops import (
    CRAWL,
    FORBIDDEN,
    assert_broken_are_dead,
    assert_found_everything,
    fetches,
    needed_fetches,
    shop_urls,
)
from support.sites import Site, serving
from support.until import until_now

SHOP_HOSTS, PRODUCTS = 6, 300
KILLS = 3
REDIS = -1

HOSTS, PAGES, PER_SECOND = 5, 20, 2
"""The rate is so slow that the machine's own milliseconds per request do not matter."""
RATE = f"{PER_SECOND}/s"
SLOWEST = 1.1
"""The longest that a crawl may take, as a multiple of what its rate requires."""


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    until_now("its end", lambda: not is_alive(pid))


def has_answered(shop: Shop, requests: int) -> bool:
    return len(shop.log) >= requests


def test_three_workers_and_redis_are_killed(tmp_path: Path) -> None:
    random = seeded_random("kills of workers and of Redis")
    moments = sorted(random.sample(range(1, SHOP_HOSTS * PRODUCTS), KILLS + 1))
    victims = random.sample([*range(KILLS), REDIS], KILLS + 1)
    with (
        RedisServer(tmp_path / "redis", *DURABLE) as server,
        serving(Shop(hosts=SHOP_HOSTS, products=PRODUCTS)) as shop,
    ):
        folder = Folder(tmp_path, {"SHOAL_FRONTIER": server.url, **shop_urls(shop)})
        with folder.running(*CRAWL, "--workers", "3") as crawl:
            for moment, victim in zip(moments, victims, strict=True):
                until_now(f"request {moment}", partial(has_answered, shop, moment))
                if victim == REDIS:
                    server.kill()
                    until_now("somebody to notice", lambda: WAITING in crawl.err)
                    server.start()
                else:
                    kill(random.choice(until_now("a worker", crawl.workers)))
            ended = crawl.wait()
        assert ended.code == 3, ended
        assert ended.err.count("a worker died (signal SIGKILL); starting another") == KILLS
        assert not has_crashed(ended.err), ended.err
        assert_found_everything(folder, shop)
        assert_broken_are_dead(folder, shop)
        stats = folder.stats("shop")
    assert_adds_up(stats)
    assert (stats.state, stats.dead, stats.leased) == ("finished", len(shop.broken()), 0)
    asked, needed = fetches(shop.log), needed_fetches(shop)
    again = asked - needed - Counter(asked.keys() - needed.keys())
    assert again.total() <= stats.lost
    assert not [page for _, page in asked if page.startswith(FORBIDDEN)]


@pytest.mark.alone
def test_four_workers_keep_the_rate_and_are_not_slow(tmp_path: Path) -> None:
    ratio = crawl_at_the_rate(tmp_path)
    print(f"times what the rate makes necessary: {ratio:.3f}")
    assert ratio <= SLOWEST


def crawl_at_the_rate(path: Path) -> float:
    """Crawl, and return the duration as a multiple of what the rate requires. Only this depends on
    the machine; all else is checked here."""
    with ExitStack() as stack:
        server = stack.enter_context(RedisServer(path / "redis", *DURABLE))
        sites = [stack.enter_context(serving(Site(numbered_pages(PAGES)))) for _ in range(HOSTS)]
        folder = Folder(path, {"SHOAL_FRONTIER": server.url})
        put_spider(folder, sites, rate=RATE)
        crawl = stack.enter_context(folder.running("crawl", "links.py", "--workers", "2"))
        others = ("worker", "links.py", "--workers", "2", "--until-finished")
        worker = stack.enter_context(folder.running(*others))
        for command in (crawl, worker):
            ended = command.wait()
            assert ended.code == 0, ended
        stats = assert_links_are_complete(folder, sites, PAGES)
        assert_losses_explain_repeats(sites, stats)
        assert stats.lost == 0
        for site in sites:
            assert_rate_holds(all_hits(site), PER_SECOND)
        return duration_s(sites) / necessary_s(sites)


def duration_s(sites: Sequence[Site]) -> float:
    moments = [hit.at for hit in chain.from_iterable(map(all_hits, sites))]
    return max(moments) - min(moments)


def necessary_s(sites: Sequence[Site]) -> float:
    """The time that the turns of the slowest site take. Turns are a little longer than the rate
    requires, so that requests which leave late do not break it."""
    turn_s = parse_rate(RATE).interval_s
    return max((len(all_hits(site)) - 1) * turn_s for site in sites)
