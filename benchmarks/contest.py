"""The contestants of `make bench`, the pages that they crawl, and the order of their runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import msgspec
from rich.console import Console

from benchmarks import crawls, scrapy_crawls
from benchmarks.crawls import Run, Runs, Setup
from benchmarks.postgres_server import new_database, postgres_server
from benchmarks.redis_server import RedisServer, redis_server
from benchmarks.scrapy_crawls import Contestant
from benchmarks.site import make_site, served_all

HOSTS = 20

BARE = "bare loop"
SCRAPY_REDIS = "scrapy-redis"
FLEET = "Shoal, Redis + PostgreSQL"
EMBEDDED = "Shoal, SQLite"
MANY = f", {HOSTS} hosts"
TWO = ", 2 processes"
"""Parts of the names of contestants, by which tables and charts find them."""

Contestants = dict[str, Callable[[], Run]]


class Arena(msgspec.Struct, frozen=True):
    """The shops and servers of all runs. All servers are up as long as the contest lasts."""

    large: Sequence[str]
    """One shop, with as many pages as were asked for."""
    many: Sequence[str]
    """As many pages, spread over twenty hosts."""
    small: str
    """A smaller shop for slow contestants. Its share of links to known pages is the same."""
    redis: RedisServer
    postgres: str


@contextmanager
def opened(pages: int, small_pages: int) -> Iterator[Arena]:
    """Make the shops, and run all servers."""
    large, small = make_site(pages), make_site(small_pages)
    many = [make_site(max(pages // HOSTS, 1), shop) for shop in range(HOSTS)]
    with (
        served_all([large]) as one,
        served_all(many) as twenty,
        served_all([small]) as (less,),
        redis_server(durable=True) as redis,
        postgres_server() as postgres,
    ):
        yield Arena(one, twenty, less, redis, postgres)


def headline(arena: Arena) -> Contestants:
    """The contestants needed for the two most important ratios."""
    own = yardsticks(arena)
    return {
        BARE: own.pop(BARE),
        SCRAPY_REDIS: lambda: _scrapy(arena, "scrapy-redis-fifo", tuned=True),
        **own,
    }


def yardsticks(arena: Arena) -> Contestants:
    """The bare loop and Shoal, each in one process without a limit per host."""
    return {
        BARE: lambda: crawls.bare(arena.large),
        FLEET: lambda: on_postgres(arena, arena.large),
        EMBEDDED: lambda: crawls.shoal(arena.large),
    }


def ours(arena: Arena) -> Contestants:
    """Shoal on all stores, with one and two workers, on one and on twenty hosts."""
    redis, hundred = arena.redis, Setup(concurrency=100)
    return {
        f"{FLEET}{TWO}": lambda: on_postgres(arena, arena.large, crawls.TWO),
        f"{FLEET}, concurrency 100": lambda: on_postgres(arena, arena.large, hundred),
        f"{EMBEDDED}{TWO}": lambda: crawls.shoal(arena.large, crawls.TWO),
        "Shoal, Redis + SQLite": lambda: crawls.shoal_on_redis(arena.large, redis),
        f"Shoal, Redis + SQLite{TWO}": lambda: crawls.shoal_on_redis(
            arena.large, redis, crawls.TWO
        ),
        f"{BARE}{MANY}": lambda: crawls.bare(arena.many),
        f"{FLEET}{MANY}": lambda: on_postgres(arena, arena.many),
        f"{FLEET}{TWO}{MANY}": lambda: on_postgres(arena, arena.many, crawls.TWO),
        f"{EMBEDDED}{MANY}": lambda: crawls.shoal(arena.many),
    }


def theirs(arena: Arena) -> Contestants:
    """The peers, tuned (see docs/performance.md) and with their defaults."""
    return {
        f"{SCRAPY_REDIS}{TWO}": lambda: _scrapy(arena, "scrapy-redis-fifo", tuned=True, many=2),
        f"{SCRAPY_REDIS}, defaults": lambda: _scrapy(arena, "scrapy-redis"),
        "Scrapy in memory": lambda: _scrapy(arena, "memory", tuned=True),
        "Scrapy in memory, defaults": lambda: _scrapy(arena, "memory"),
        "Crawlee in memory": lambda: crawls.crawlee(arena.small),
    }


def on_postgres(arena: Arena, bases: Sequence[str], setup: Setup = crawls.ONE) -> Run:
    """Crawl with the queue on Redis and the items in a new database."""
    with new_database(arena.postgres) as results:
        return crawls.shoal_on_redis(bases, arena.redis, setup, results=results)


def _scrapy(arena: Arena, scheduler: str, *, tuned: bool = False, many: int = 1) -> Run:
    """Crawl with Scrapy. Items go to Redis if the queue is there, otherwise to a file."""
    contestant = Contestant(
        scheduler, processes=many, store_items=scheduler != "memory", tuned=tuned
    )
    return scrapy_crawls.crawl(contestant, arena.small, arena.redis)


def in_rounds(contestants: Contestants, rounds: int, console: Console) -> Runs:
    """Run all contestants in turn, several times: a machine that gets slower affects all."""
    runs: Runs = {}
    for number in range(1, rounds + 1):
        for name, contest in contestants.items():
            run = contest()
            runs.setdefault(name, []).append(run)
            console.print(f"round {number}: {name}: {run.pages_per_s:,.0f} pages/s")
    return runs
