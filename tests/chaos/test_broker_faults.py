"""A crawl on RabbitMQ and Redis whose broker is purged, is short of disk space, or is set up
wrong."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from shoal.demo.shop import Shop
from shoal.drivers.amqp.link import AmqpLink, amqp_address
from shoal.frontier.broker.carrier import shared_lane
from shoal.runtime.eventloop import run
from support.crashes import has_crashed
from support.processes import Ended, Folder
from support.rabbitmq_servers import PASSWORD, WRITER, RabbitServer
from support.redis_chaos import DURABLE, assert_adds_up
from support.redis_servers import RedisServer
from support.shops import CRAWL, assert_broken_are_dead, assert_found_everything, shop_urls
from support.sites import serving
from support.until import until_now

pytestmark = [pytest.mark.alone, pytest.mark.rare]

HOSTS, PRODUCTS = 2, 60
SMALL = "?window=4&block=4"
PURGE = "[rabbit_amqqueue:purge(Q) || Q <- rabbit_amqqueue:list()]."
"""Purges all queues in one call: rabbitmqctl needs a second per call."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with RedisServer(tmp_path / "redis", *DURABLE) as server:
        yield server


@pytest.fixture
def shop() -> Iterator[Shop]:
    with serving(Shop(hosts=HOSTS, products=PRODUCTS)) as shop:
        yield shop


def folder_of(path: Path, frontier: str, server: RedisServer, shop: Shop) -> Folder:
    addresses = {"SHOAL_FRONTIER": frontier, "SHOAL_STATE": server.url}
    return Folder(path, {**addresses, **shop_urls(shop)})


def has_answered(shop: Shop, requests: int) -> bool:
    return len(shop.log) >= requests


def is_quiet(folder: Folder) -> bool:
    return folder.stats("shop").leased == 0


def has_blocks(server: RabbitServer) -> bool:
    """Whether any queue has messages. This may take a moment after the queues were created."""
    return any(int(ready) for (ready,) in server.queues("messages_ready"))


class TestPurged:
    def test_everything_is_found_after_a_repair(
        self, tmp_path: Path, rabbitmq_server: RabbitServer, server: RedisServer, shop: Shop
    ) -> None:
        folder = folder_of(tmp_path, f"{rabbitmq_server.url}{SMALL}", server, shop)
        with folder.running(*CRAWL) as crawl:
            until_now("the middle of the crawl", partial(has_answered, shop, 40))
            refused = folder.shoal("seed", "shop", "--repair")
            assert (refused.code, "shoal pause shop" in refused.err) == (2, True), refused
            assert folder.shoal("pause", "shop").code == 0
            until_now("nothing in hand", partial(is_quiet, folder))
            until_now("blocks at the broker", partial(has_blocks, rabbitmq_server))
            rabbitmq_server.ctl("eval", PURGE)
            repaired = folder.shoal("seed", "shop", "--repair", "--json", *shop.urls)
            assert repaired.code == 0, repaired
            told = repaired.json()
            assert told["lost"] > 0
            assert told["added"] == HOSTS, "the seeds are new again"
            assert folder.shoal("resume", "shop").code == 0
            ended = crawl.wait()
        assert ended.code == 3, ended
        stats = folder.stats("shop")
        assert_adds_up(stats)
        assert (stats.state, stats.remaining, stats.missing) == ("finished", 0, 0)
        assert stats.dropped >= told["lost"]
        assert_found_everything(folder, shop)
        assert_broken_are_dead(folder, shop)


class TestShortOfDisk:
    def test_the_crawl_goes_on_when_there_is_room_again(
        self, tmp_path: Path, server: RedisServer, shop: Shop
    ) -> None:
        with RabbitServer(tmp_path / "rabbit") as broker:
            folder = folder_of(tmp_path, f"{broker.url}{SMALL}", server, shop)
            with folder.running(*CRAWL) as crawl:
                until_now("the middle of the crawl", partial(has_answered, shop, 30))
                broker.ctl("set_disk_free_limit", "mem_relative", "1000000")
                until_now("a word of it", lambda: "short of memory or disk space" in crawl.err)
                assert not crawl.has_ended()
                broker.ctl("set_disk_free_limit", "50MB")
                until_now("a word of it", lambda: "the broker is back" in crawl.err)
                ended = crawl.wait()
            assert ended.code == 3, ended
            assert not has_crashed(ended.err), ended.err
            assert_found_everything(folder, shop)
            assert_broken_are_dead(folder, shop)
            assert broker.queues("name") == [], "queues are left"


def refused(folder: Folder, why: str) -> Ended:
    """Run a crawl that cannot begin, and check that it gives this reason in one line."""
    ended = folder.shoal(*CRAWL)
    assert ended.code == 2, ended
    (line,) = [line for line in ended.err.splitlines() if why in line]
    assert line.startswith("shoal: "), ended.err
    assert not has_crashed(ended.err), ended.err
    assert PASSWORD not in ended.err
    return ended


BEFORE = ("password", "vhost", "trust")
"""Faults that are noticed before a crawl begins. Others are noticed with the first block."""


class TestSetUpWrong:
    @pytest.mark.parametrize(
        "what",
        ["kind", *BEFORE, "rights"],
    )
    def test_a_line_and_nothing_is_lost(
        self,
        tmp_path: Path,
        rabbitmq_server: RabbitServer,
        server: RedisServer,
        shop: Shop,
        what: str,
    ) -> None:
        broker = rabbitmq_server
        addresses = {
            "password": (broker.url_of("test", "wrong"), "login is refused"),
            "vhost": (broker.url_of("test", vhost="nowhere"), "no virtual host 'nowhere'"),
            "rights": (broker.url_of(WRITER), "access to queue"),
            "trust": (broker.tls_url.partition("?")[0], "certificate"),
            "kind": (f"{broker.url}", "inequivalent arg"),
        }
        address, why = addresses[what]
        if what == "kind":
            run(_declare_otherwise(broker))
        wrong = folder_of(tmp_path, f"{address}{SMALL}", server, shop)
        refused(wrong, why)
        if what in BEFORE:
            assert shop.log == [], "a page was asked for"
        else:
            assert_adds_up(wrong.stats("shop"))
        if what == "kind":
            assert {count for _, count in broker.queues("name", "messages")} == {"0"}
            run(_delete(broker))
        right = folder_of(tmp_path, f"{broker.url}{SMALL}", server, shop)
        ended = right.shoal(*CRAWL)
        assert ended.code == 3, ended
        assert_found_everything(right, shop)


async def _declare_otherwise(broker: RabbitServer) -> None:
    link = AmqpLink(amqp_address(broker.url))
    for number in range(64):
        await link.declare(shared_lane("shop", number), {"x-queue-type": "classic"})
    await link.close()


async def _delete(broker: RabbitServer) -> None:
    link = AmqpLink(amqp_address(broker.url))
    for number in range(64):
        await link.delete(shared_lane("shop", number))
    await link.close()
