"""Measures bytes of Redis per queued request, for Shoal and for scrapy-redis.

A spider finds the same 10,000 links on its first page and closes before it follows them. Their size
is the difference in the server's memory: the queue and the known requests together.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable

import redis
from rich.table import Table

from benchmarks import procstat
from benchmarks.redis_server import RedisServer
from benchmarks.scrapy_crawls import python_for
from benchmarks.scrapy_spiders import QUEUED, Queueing
from shoal.frontier import frontier_at
from shoal.runtime.eventloop import run

CRAWL = Queueing.name
QUEUES = {
    "shoal.scrapy": "shoal",
    "scrapy-redis, PriorityQueue": "scrapy-redis",
    "scrapy-redis, FifoQueue": "scrapy-redis-fifo",
}

Sizes = dict[str, float]


def sizes(base: str, server: RedisServer) -> Sizes:
    """Bytes per request. They do not vary, so each queue is measured once."""
    return {name: _bytes_per_request(base, server, own) for name, own in QUEUES.items()}


def _bytes_per_request(base: str, server: RedisServer, scheduler: str) -> float:
    server.empty()
    empty = server.used_bytes()
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        command = [python_for(scheduler), "-m", "benchmarks.scrapy_crawl", scheduler]
        usage = procstat.run([*command, base, server.address, folder, "--only-queue"])
    queued = _COUNTS[scheduler](server)
    if usage.exit_code or queued < QUEUED * 0.9:
        raise SystemExit(f"{scheduler} has queued only {queued} of {QUEUED} requests")
    return (server.used_bytes() - empty) / queued


def _on_shoal(server: RedisServer) -> int:
    return run(_waiting(server.address))


async def _waiting(address: str) -> int:
    async with frontier_at(address) as frontier:
        return (await frontier.stats(CRAWL)).waiting


def _in_sorted_set(server: RedisServer) -> int:
    return redis.Redis(port=server.port).zcard(f"{CRAWL}:requests")


def _in_list(server: RedisServer) -> int:
    return redis.Redis(port=server.port).llen(f"{CRAWL}:requests")


_COUNTS: dict[str, Callable[[RedisServer], int]] = {
    "shoal": _on_shoal,
    "scrapy-redis": _in_sorted_set,
    "scrapy-redis-fifo": _in_list,
}


def size_table(found: Sizes) -> Table:
    """A table of bytes per request, and of ratios to Shoal's."""
    table = Table("", "bytes per request", "times", title=f"Redis: {QUEUED:,} requests queued")
    smallest = found["shoal.scrapy"]
    for name, size in found.items():
        table.add_row(name, f"{size:.0f}", f"{size / smallest:.2f}")
    table.caption = "including what is kept of each request to recognise it again"
    return table
