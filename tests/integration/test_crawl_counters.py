"""What a page costs the stores, counted instead of timed: round trips, commands, statements.

One worker crawls 301 pages with twenty links each, the start of the crawl included. How many pages
go into a batch depends a little on the machine, so there is a margin. What this is to find (a round
trip, a transaction, a command or a statement for every page or link) is far beyond it.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import redis
from aiohttp import web

from shoal import Item, Page, Spider, config
from shoal.fleet.stores import stores_at
from shoal.seeds.seeding import seed_from_spider
from shoal.spider.own_settings import settings_of
from shoal.worker.assignment import Assignment
from shoal.worker.visits.spider_visits import spider_worker
from support.postgres_servers import QUICK, PostgresServer
from support.redis_servers import RedisServer
from support.sites import Site, html

PAGES = 301
LINKS = 20
DATABASE = "counted"

ON_FLEET = {"round trips": 0.2, "scripts": 0.1, "commands": 1.8, "transactions": 0.085}
"""Per page, with the queue on Redis and the items in PostgreSQL. A batch of pages is finished, and
the next one leased, in one round trip; its items are saved in one transaction. `commands` are those
on Redis that scripts call."""
ON_FILE = {"statements": 1.6, "transactions": 0.095}
"""Per page, with both in one file."""
MARGIN = 2.0
"""How far a busy machine, with its smaller batches, may be from that."""


class Product(Item, key="number"):
    number: int
    title: str


class Shop(Spider):
    name = "counted"
    rate = "none"
    robots = False

    def parse(self, page: Page) -> Iterator[Any]:
        number = int(page.url.rpartition("/")[2])
        yield Product(number=number, title=page.css("h1::text").get() or "")
        yield page.follow_all("a")


async def answer(path: str) -> web.Response:
    """A page that links to ten deeper ones, and to others that are known already or soon."""
    number = int(path.strip("/"))
    deeper = range(number * 10 + 1, min(number * 10 + 11, PAGES))
    others = Random(number).sample(range(PAGES), LINKS - len(deeper))
    links = "".join(f'<a href="/{linked}">{linked}</a>' for linked in [*deeper, *others])
    return html(f"<h1>Product {number}</h1>{links}")


async def crawl(frontier_address: str, results_address: str) -> None:
    """All pages, by one worker of this process."""
    async with Site(answer) as site:
        addresses = {"frontier": frontier_address, "results": results_address}
        settings = config.build(
            settings_of(Shop) | addresses | {"allow_private": True, "concurrency": 32}
        )
        spider = Shop()
        spider.start_urls = [f"{site.url}0"]
        async with stores_at(settings, archive=False) as stores:
            frontier = stores.frontier
            await frontier.start(Shop.name, settings.rules)
            await seed_from_spider(frontier, Shop.name, spider, settings.rules)
            assignment = Assignment("one", Shop.name, stores, settings.concurrency)
            await spider_worker(assignment, lambda rules: spider, settings).run()
            assert (await frontier.stats(Shop.name)).done == PAGES
            assert await stores.results.count(Shop.name) == {"Product": PAGES}


def on_redis(client: redis.Redis) -> Counter[str]:
    """What the server has done so far."""
    stats = client.info("stats")
    scripts = client.info("commandstats").get("cmdstat_evalsha", {}).get("calls", 0)
    counts = {
        "round trips": stats["total_reads_processed"],
        "scripts": scripts,
        "commands": stats["total_commands_processed"] - scripts,
    }
    return Counter(counts)


def on_postgres(server: PostgresServer) -> Counter[str]:
    """What was done in the database so far."""
    query = f"SELECT xact_commit FROM pg_stat_database WHERE datname = '{DATABASE}'"
    ((commits,),) = server.execute(query)
    return Counter({"transactions": commits})


@pytest.fixture
def on_file(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """What is done in files from now on."""
    counts: Counter[str] = Counter()

    def count(statement: str) -> None:
        counts["statements"] += 1
        counts["transactions"] += statement == "COMMIT"

    def connect(path: Path, **options: Any) -> sqlite3.Connection:
        connection = sqlite3.Connection(path, **options)
        connection.set_trace_callback(count)
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect)
    return counts


def assert_near(counts: Counter[str], expected: dict[str, float]) -> None:
    per_page = {name: round(counts[name] / PAGES, 3) for name in expected}
    too_many = {name for name, count in per_page.items() if count > expected[name] * MARGIN}
    too_few = {name for name, count in per_page.items() if count < expected[name] / MARGIN}
    assert not too_many, f"a page costs {per_page}, and not {expected}"
    assert not too_few, f"a page costs only {per_page}: lower what is expected, {expected}"


async def test_on_redis_and_postgres(raw: redis.Redis, server: RedisServer) -> None:
    with PostgresServer(**QUICK) as postgres:
        results = postgres.new_database(DATABASE)
        before = on_redis(raw) + on_postgres(postgres)
        await crawl(server.url, results)
        assert_near(on_redis(raw) + on_postgres(postgres) - before, ON_FLEET)


async def test_on_a_file(tmp_path: Path, on_file: Counter[str]) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    await crawl(store, store)
    assert_near(on_file, ON_FILE)
