"""`python -m benchmarks.latency`: measures how slow hosts scale with workers, up to their rate.

Fifty hosts answer after 200 ms, and each may be hit five times a second. A worker has four slots,
so it waits nearly all of the time: twice the workers should do twice the pages, until the rate is
the limit. The last row has enough slots, so that only the rate limits it. All workers run before
the crawl gets its tasks. The hosts record when they were hit.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
from rich.table import Table

from benchmarks.redis_server import RedisServer, redis_server
from benchmarks.report import keep, wide_console
from benchmarks.slow_server import Seen, SlowHosts, slow_hosts
from benchmarks.spider import Waiting
from shoal import config
from shoal.frontier import frontier_at
from shoal.runtime.eventloop import run
from shoal.seeds.seeding import seed_from_spider
from shoal.spider.own_settings import settings_of

HOSTS = 50
DELAY_S = 0.2
SLOTS = 4
MANY_SLOTS = 32
WORKERS = (1, 2, 4, 8)


class Fleet(msgspec.Struct, frozen=True):
    """A number of workers, each with the same number of slots."""

    workers: int
    slots: int

    def __str__(self) -> str:
        return f"{self.workers} x {self.slots} slots"


FLEETS = [*(Fleet(workers, SLOTS) for workers in WORKERS), Fleet(WORKERS[-1], MANY_SLOTS)]

Runs = dict[str, list[Seen]]


def crawl(fleet: Fleet, hosts: SlowHosts, pages: int, server: RedisServer) -> Seen:
    """Crawl all pages of all hosts, in no particular order."""
    server.empty()
    os.environ["SHOAL_BENCH_URLS"] = ",".join(
        f"http://127.0.0.1:{port}/{number}" for number in range(pages) for port in hosts.ports
    )
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        results = f"sqlite:///{folder}/results.db"
        run(_begin(server.address))
        with _workers(fleet, server.address, results) as processes:
            run(_seed(server.address, fleet.workers))
            for process in processes:
                if process.wait():
                    raise SystemExit(f"a worker failed with exit code {process.returncode}")
    seen = hosts.seen()
    if seen.requests != pages * len(hosts.ports):
        raise SystemExit(f"{seen.requests} requests for {pages * len(hosts.ports)} pages")
    return seen


async def _begin(address: str) -> None:
    """Create the crawl, without any tasks."""
    async with frontier_at(address) as frontier:
        await frontier.start(Waiting.name, config.build(settings_of(Waiting)).rules)


async def _seed(address: str, workers: int) -> None:
    """Wait for all workers, then add all tasks."""
    async with frontier_at(address) as frontier:
        while len(await frontier.workers(Waiting.name)) < workers:
            await asyncio.sleep(0.05)
        rules = (await frontier.stats(Waiting.name)).rules
        await seed_from_spider(frontier, Waiting.name, Waiting(), rules)


@contextmanager
def _workers(fleet: Fleet, frontier: str, results: str) -> Iterator[list[subprocess.Popen[bytes]]]:
    command = [sys.executable, "-m", "shoal", "worker", "benchmarks.spider:Waiting"]
    command += ["--until-finished", "--allow-private", "--concurrency", str(fleet.slots)]
    command += ["--frontier", frontier, "--results", results]
    processes = [subprocess.Popen(command) for _ in range(fleet.workers)]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


def table_of(runs: Runs, least_s: float, limit: int) -> Table:
    """A table of medians, and of the efficiency relative to one worker in the same round."""
    table = Table(
        *("", "pages/s", "efficiency", "seconds", "of the least time", "most hits in 1 s"),
        title=f"{HOSTS} hosts, {DELAY_S * 1000:.0f} ms each (aim: efficiency 0.9)",
        caption=f"the rate allows no less than {least_s:.1f} s; {limit} hits are allowed in 1 s",
    )
    one = runs[str(FLEETS[0])]
    for fleet in FLEETS:
        own = runs[str(fleet)]
        share = [a.seconds / b.seconds / fleet.workers for a, b in zip(one, own, strict=True)]
        seconds = statistics.median(seen.seconds for seen in own)
        table.add_row(
            str(fleet),
            f"{own[0].requests / seconds:,.1f}",
            f"{statistics.median(share):.2f}" if fleet.slots == SLOTS else "",
            f"{seconds:.1f}",
            f"{seconds / least_s:.2f}",
            f"{max(seen.busiest for seen in own)}",
        )
    return table


def main() -> None:
    """Measure, print, keep the raw figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.latency", description=__doc__)
    parser.add_argument("--pages", type=int, default=40, help="of each host")
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    console = wide_console()
    runs: Runs = {}
    with slow_hosts(HOSTS, DELAY_S) as hosts, redis_server(durable=True) as server:
        for number in range(1, args.rounds + 1):
            for fleet in FLEETS:
                seen = crawl(fleet, hosts, args.pages, server)
                runs.setdefault(str(fleet), []).append(seen)
                console.print(f"round {number}: {fleet}: {seen.seconds:.1f} s")
    # The first request of each host goes at once, and only the last answer has to be waited for:
    # the others arrive while the rate delays the next request.
    least_s = (args.pages - 1) / Waiting.PER_SECOND + DELAY_S
    table = table_of(runs, least_s, Waiting.PER_SECOND)
    console.print(table)
    console.print(f"raw figures: {keep('latency', runs, table)}")


if __name__ == "__main__":
    main()
