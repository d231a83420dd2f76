"""Deliverers, workers and Redis are killed: in the end, the store has all results once."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import redis

from contract.results_suite import CRAWL, some_item, some_page
from shoal.demo.shop import Shop
from shoal.results.port import Batch
from shoal.results.stream import RedisStreamResults
from support import shops
from support.crashes import has_crashed
from support.processes import Folder, Running, is_alive, seeded_random
from support.redis_chaos import DURABLE, assert_adds_up
from support.redis_servers import RedisServer
from support.shops import assert_broken_are_dead, assert_found_everything, shop_urls
from support.sites import serving
from support.streams import KEY, age, held, stream_url, waiting
from support.until import until_now

BATCHES = 40
KILLS = 3
STORE = "drained.db"
DRAIN = ("drain", "--to", f"sqlite:///{STORE}")
WAITING = "waiting for the result stream"
BACK = "the result stream is back"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with RedisServer(tmp_path / "redis", *DURABLE) as server:
        yield server


@pytest.fixture
def raw(server: RedisServer) -> redis.Redis:
    return server.client()


@pytest.fixture
def folder(tmp_path: Path, server: RedisServer) -> Folder:
    return Folder(tmp_path, {"SHOAL_RESULTS": stream_url(server)})


@contextmanager
def locked(folder: Folder) -> Iterator[None]:
    """Lock the store, so that nobody else can write to it."""
    with closing(sqlite3.connect(folder.path / STORE, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


@contextmanager
def open_deliverer(folder: Folder, server: RedisServer) -> Iterator[Running]:
    """Start a deliverer, and wait until it has looked into the stream. Before that it has opened
    its store."""
    with folder.running(*DRAIN) as deliverer, server.client() as raw:
        until_now("a deliverer's first look", lambda: raw.exists(KEY) and raw.xinfo_groups(KEY))
        yield deliverer


def fill(server: RedisServer, batches: range) -> None:
    async def fill() -> None:
        results = RedisStreamResults(stream_url(server))
        for number in batches:
            page = some_page(attempt=number)
            await results.save(CRAWL, Batch([page], [some_item(f"k{number}")]))
        await results.close()

    asyncio.run(fill())


def stored(folder: Folder) -> tuple[int, int, int]:
    """The numbers of items, pages and readings in the store."""
    with closing(sqlite3.connect(folder.path / STORE)) as connection:
        tables = ("items", "pages", "observations")
        counts = [connection.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in tables]
    return counts[0], counts[1], counts[2]


def kill(running: Running) -> None:
    running.send(signal.SIGKILL)
    running.wait()


def drain_the_rest(folder: Folder, raw: redis.Redis) -> int:
    """Let another deliverer take over. Returns how many items it wrote."""
    age(raw)
    ended = folder.shoal(*DRAIN, "--until-empty", "--json")
    assert ended.code == 0, ended
    assert (waiting(raw), held(raw)) == (0, 0)
    return int(ended.json()["items"])


def test_killed_after_it_has_taken_and_before_it_has_saved(
    folder: Folder, server: RedisServer, raw: redis.Redis
) -> None:
    with open_deliverer(folder, server) as deliverer, locked(folder):
        fill(server, range(BATCHES))
        until_now("the deliverer to take batches", lambda: held(raw))
        kill(deliverer)
    assert stored(folder) == (0, 0, 0)
    assert drain_the_rest(folder, raw) == BATCHES
    assert stored(folder) == (BATCHES, BATCHES, BATCHES)


def test_killed_after_it_has_saved_and_before_it_has_acknowledged(
    folder: Folder, server: RedisServer, raw: redis.Redis
) -> None:
    with open_deliverer(folder, server) as deliverer:
        with locked(folder):
            fill(server, range(BATCHES))
            taken = until_now("the deliverer to take batches", lambda: held(raw))
            server.kill()
        until_now("the items", lambda: stored(folder)[0] == taken)
        kill(deliverer)
    server.start()
    assert held(raw) == taken
    assert drain_the_rest(folder, raw) == BATCHES
    assert stored(folder) == (BATCHES, BATCHES, BATCHES)


@pytest.mark.rare
def test_another_deliverer_takes_over_from_a_dead_one(
    folder: Folder, server: RedisServer, raw: redis.Redis
) -> None:
    with open_deliverer(folder, server) as dying, locked(folder):
        fill(server, range(BATCHES))
        until_now("the deliverer to take batches", lambda: held(raw))
        kill(dying)
    with folder.running(*DRAIN) as living:
        until_now("the other to store what nobody has", lambda: waiting(raw) == held(raw))
        age(raw)
        until_now("the stream to be empty", lambda: waiting(raw) == 0)
        assert not living.has_ended()
    assert stored(folder) == (BATCHES, BATCHES, BATCHES)


def test_redis_is_killed_and_comes_back(
    folder: Folder, server: RedisServer, raw: redis.Redis
) -> None:
    with open_deliverer(folder, server) as deliverer:
        with locked(folder):
            fill(server, range(BATCHES))
            until_now("the deliverer to take batches", lambda: held(raw))
            server.kill()
        until_now("the deliverer to notice", lambda: WAITING in deliverer.err)
        server.start()
        until_now("the stream to be empty", lambda: waiting(raw) == 0)
        fill(server, range(BATCHES, 2 * BATCHES))
        until_now("the stream to be empty again", lambda: waiting(raw) == 0)
        deliverer.send(signal.SIGTERM)
        ended = deliverer.wait()
    assert ended.code == 0, ended
    assert (ended.err.count(WAITING), ended.err.count(BACK)) == (1, 1), ended.err
    assert not has_crashed(ended.err), ended.err
    assert stored(folder) == (2 * BATCHES, 2 * BATCHES, 2 * BATCHES)


@pytest.mark.rare
def test_a_whole_crawl_through_the_stream(
    tmp_path: Path, folder: Folder, server: RedisServer, raw: redis.Redis
) -> None:
    """Workers and deliverers die in turn. The stream is so short that workers must wait."""
    random = seeded_random("kills of workers and deliverers")
    with serving(Shop(hosts=4, products=200)) as shop:
        address = stream_url(server, max=5)
        env = {"SHOAL_FRONTIER": server.url, **shop_urls(shop)}
        crawling = Folder(tmp_path, {**env, "SHOAL_RESULTS": address})
        with crawling.running(*shops.CRAWL, "--workers", "2") as crawl:
            until_now("the stream to be full", lambda: "is full: 5 batches wait" in crawl.err)
            for moment in sorted(random.sample(range(50, 500), KILLS)):
                with open_deliverer(folder, server) as dying:
                    wait_for_progress(folder, shop, moment)
                    kill(dying)
                age(raw)
                kill_one(random.choice(until_now("a worker", crawl.workers)))
            with folder.running(*DRAIN) as deliverer:
                ended = crawl.wait()
                until_now("the stream to be empty", lambda: waiting(raw) == 0)
                deliverer.send(signal.SIGTERM)
                assert deliverer.wait().code == 0
        assert ended.code == 3, ended
        assert not has_crashed(ended.err), ended.err
        assert ended.err.count("a worker died (signal SIGKILL); starting another") == KILLS
        assert f"the items: shoal drain --results {shlex.quote(address)} --to" in ended.out
        reading = Folder(tmp_path, {**env, "SHOAL_RESULTS": f"sqlite:///{STORE}"})
        assert_found_everything(reading, shop)
        assert_broken_are_dead(reading, shop)
        assert_adds_up(reading.stats("shop"))


def wait_for_progress(folder: Folder, shop: Shop, requests: int) -> None:
    """Wait until the shop had this many requests, and the store has more than now."""
    before = stored(folder)
    until_now(f"request {requests}", lambda: len(shop.log) >= requests)
    until_now("more in the store", lambda: stored(folder) > before)


def kill_one(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    until_now("its end", lambda: not is_alive(pid))
