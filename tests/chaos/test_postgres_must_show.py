"""A fleet on Redis and PostgreSQL survives killed workers and a database that goes away."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from shoal.demo.shop import Shop
from shoal.worker.leasing import HELD_PER_SLOT
from support.crashes import has_crashed
from support.links import GatedSite, put_spider
from support.postgres_servers import PostgresServer
from support.processes import Folder, Running, is_alive, seeded_random
from support.redis_chaos import DURABLE, assert_adds_up, assert_links_are_complete
from support.redis_servers import RedisServer
from support.shops import CRAWL, assert_broken_are_dead, assert_found_everything, shop_urls
from support.sites import serving
from support.until import until_now

HOSTS, PRODUCTS = 6, 300
KILLS, CRASHES = 3, 2
DATABASE = -1
PAGES = 120
CONCURRENCY = 8
OPEN = {"rate": "none", "concurrency": CONCURRENCY, "concurrency_per_host": PAGES}
"""Rules without limits for hosts, so that only the workers' concurrency counts."""

WAITING = "waiting for the results store"
BACK = "the results store is back"


@pytest.fixture(scope="module")
def database() -> Iterator[PostgresServer]:
    """A server with PostgreSQL's own durability: a crash must not lose what was committed."""
    with PostgresServer() as server:
        yield server


@pytest.fixture
def site() -> Iterator[GatedSite]:
    with serving(GatedSite(PAGES)) as site:
        yield site
        site.allowed = 10**9


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    until_now("its end", lambda: not is_alive(pid))


def has_answered(shop: Shop, requests: int) -> bool:
    return len(shop.log) >= requests


def has_waited(crawl: Running, times: int) -> bool:
    return crawl.err.count(WAITING) > times


def nobody_waits(crawl: Running) -> bool:
    said = crawl.err
    return said.count(BACK) >= said.count(WAITING)


def crash_and_restart(database: PostgresServer, crawl: Running) -> None:
    """Crash with SIGQUIT: all connections are closed, and the server recovers from its log."""
    waited = crawl.err.count(WAITING)
    database.crash()
    until_now("somebody to notice", partial(has_waited, crawl, waited))
    database.start()
    # Workers that still wait would not log the next crash.
    until_now("all to notice that it is back", partial(nobody_waits, crawl))


def test_workers_are_killed_and_the_database_crashes(
    tmp_path: Path, database: PostgresServer
) -> None:
    random = seeded_random("kills of workers and crashes of PostgreSQL")
    moments = sorted(random.sample(range(1, HOSTS * PRODUCTS), KILLS + CRASHES))
    victims = random.sample([*range(KILLS), *[DATABASE] * CRASHES], KILLS + CRASHES)
    with (
        RedisServer(tmp_path / "redis", *DURABLE) as queue,
        serving(Shop(hosts=HOSTS, products=PRODUCTS)) as shop,
    ):
        env = {"SHOAL_FRONTIER": queue.url, "SHOAL_RESULTS": database.new_database("shop")}
        folder = Folder(tmp_path, {**env, **shop_urls(shop)})
        with folder.running(*CRAWL, "--workers", "3") as crawl:
            for moment, victim in zip(moments, victims, strict=True):
                until_now(f"request {moment}", partial(has_answered, shop, moment))
                if victim == DATABASE:
                    crash_and_restart(database, crawl)
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
    # Pages are saved before they are done, so every done task has an entry in the page log.
    logged = "SELECT count(DISTINCT fingerprint) FROM pages WHERE verdict = 'done'"
    assert database.execute(logged, database="shop") == [(stats.done,)]


@pytest.mark.rare
def test_while_the_database_is_away_nothing_is_finished_and_little_is_fetched(
    tmp_path: Path, database: PostgresServer, site: GatedSite
) -> None:
    folder = Folder(tmp_path, {"SHOAL_RESULTS": database.new_database("links")})
    put_spider(folder, [site], **OPEN)
    with folder.running("crawl", "links.py") as crawl:
        site.allowed = 1
        until_now("the front page to be finished", lambda: len(site.hits) > 1)
        database.stop()
        site.allowed = 10**9
        until_now("somebody to notice", lambda: has_waited(crawl, 0))
        held = HELD_PER_SLOT * CONCURRENCY
        until_now("the worker to be full", lambda: folder.stats("links").leased == held)
        assert len(site.hits) <= 1 + held
        assert folder.stats("links").done == 1
        database.start()
        ended = crawl.wait()
    assert ended.code == 0, ended
    assert (ended.err.count(WAITING), ended.err.count(BACK)) == (1, 1)
    assert_links_are_complete(folder, [site], PAGES)
    assert len(site.hits) == PAGES + 1


@pytest.mark.rare
def test_a_database_without_free_connections_is_waited_for(tmp_path: Path, site: GatedSite) -> None:
    """There is one connection too few for the workers, until the test closes its own."""
    settings = {"max_connections": "4", "superuser_reserved_connections": "0"}
    with PostgresServer(**settings) as database:
        folder = Folder(tmp_path, {"SHOAL_RESULTS": database.new_database("links")})
        put_spider(folder, [site], **OPEN)
        with (
            database.holding_a_connection() as let_go,
            folder.running("crawl", "links.py", "--workers", "3") as crawl,
        ):
            site.allowed = 1
            until_now("all to be busy", lambda: len(site.hits) > 3 * CONCURRENCY)
            site.allowed = 10**9
            until_now("somebody to be refused", lambda: has_waited(crawl, 0))
            let_go()
            ended = crawl.wait()
        assert ended.code == 0, ended
        assert ended.err.count(BACK) == ended.err.count(WAITING)
        assert_links_are_complete(folder, [site], PAGES)


def test_tasks_are_not_lost_to_a_database_that_refuses(
    tmp_path: Path, database: PostgresServer, site: GatedSite
) -> None:
    """Each failed save gives the tasks back. However often that happens, they are not poison."""
    site.allowed = 10**9
    folder = Folder(tmp_path, {"SHOAL_RESULTS": database.new_database("links")})
    put_spider(folder, [site], **OPEN, max_losses=1)
    database.execute(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'not today' USING ERRCODE = 'insufficient_privilege'; END $$",
        database="links",
    )
    assert folder.shoal("results", "prune", "--older-than", "1y").code == 0  # Creates the tables.
    refuse = "BEFORE INSERT ON pages FOR EACH ROW EXECUTE FUNCTION refuse()"
    database.execute(f"CREATE TRIGGER refusing {refuse}", database="links")
    for workers in ("1", "2", "1"):
        ended = folder.shoal("crawl", "links.py", "--workers", workers)
        assert ended.code != 0
        assert "not today" in ended.err
        assert not has_crashed(ended.err), ended.err
    stats = folder.stats("links")
    assert (stats.added, stats.waiting, stats.dead, stats.lost) == (1, 1, 0, 0)
    database.execute("DROP TRIGGER refusing ON pages", database="links")
    assert folder.shoal("crawl", "links.py").code == 0
    assert_links_are_complete(folder, [site], PAGES)


@pytest.mark.rare
def test_a_database_that_is_away_at_the_very_end_is_waited_for(
    tmp_path: Path, database: PostgresServer, site: GatedSite
) -> None:
    folder = Folder(tmp_path, {"SHOAL_RESULTS": database.new_database("links")})
    put_spider(folder, [site], **OPEN)
    site.allowed = 10**9
    with folder.running("crawl", "links.py", "--workers", "1") as crawl:
        until_now("the last page", lambda: len(site.hits) == PAGES + 1)
        until_now("the end of the crawl", lambda: folder.stats("links").state == "finished")
        database.stop()
        database.start()
        ended = crawl.wait()
    assert ended.code == 0, ended
    assert "121 item" in ended.out


@pytest.mark.rare
def test_a_worker_that_is_told_to_stop_saves_what_it_has(
    tmp_path: Path, database: PostgresServer, site: GatedSite
) -> None:
    folder = Folder(tmp_path, {"SHOAL_RESULTS": database.new_database("links")})
    put_spider(folder, [site], **OPEN)
    with folder.running("crawl", "links.py", "--workers", "2") as crawl:
        site.allowed = PAGES // 2
        until_now("half of the pages", lambda: len(site.hits) > site.allowed)
        crawl.send(signal.SIGTERM)
        # Answer only requests that have arrived: others would finish before all workers stop.
        site.allowed = len(site.hits)
        assert crawl.wait().code == 1
    site.allowed = 10**9
    stats = folder.stats("links")
    assert stats.leased == 0
    assert len(folder.export("links")) == stats.done
    assert folder.shoal("crawl", "links.py").code == 0
    assert_links_are_complete(folder, [site], PAGES)
