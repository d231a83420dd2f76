"""`python -m benchmarks.watched`: measures how much a crawl slows down if twenty people watch it.

The same crawl runs on Redis, in turn alone and beside a `shoal serve` with clients. Each client
polls as the dashboard's script does: every two seconds, with the ETag.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import aiohttp
import msgspec
from rich.table import Table

from benchmarks import crawls, procstat
from benchmarks.crawls import NAME, Run
from benchmarks.redis_server import redis_server
from benchmarks.report import keep, wide_console
from benchmarks.site import free_port, make_site, served

CLIENTS = 20
EVERY_S = 2.0
START_S = 30.0
PLACES = ("/", f"/crawls/{NAME}", f"/crawls/{NAME}/hosts", f"/crawls/{NAME}/workers")
ALONE, WATCHED = "alone", f"with {CLIENTS} at the dashboard"


class Cost(msgspec.Struct):
    """The resources that `shoal serve` used during a crawl, and the answers that it gave."""

    cores: float
    rss_mb: float
    answers: int


class Onlookers(threading.Thread):
    """A thread with `CLIENTS` clients of the dashboard, which poll until `leave` is called."""

    def __init__(self, base: str) -> None:
        super().__init__(daemon=True)
        self.answers = 0
        self._base = base
        self._is_over = threading.Event()

    def run(self) -> None:
        asyncio.run(self._look())

    def leave(self) -> None:
        """Stop all clients, and wait for the thread."""
        self._is_over.set()
        self.join()

    async def _look(self) -> None:
        async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
            for number in range(CLIENTS):
                place = PLACES[number % len(PLACES)]
                group.create_task(self._look_at(session, f"{self._base}/live{place}", number))

    async def _look_at(self, session: aiohttp.ClientSession, url: str, number: int) -> None:
        etag = ""
        await asyncio.sleep(EVERY_S * number / CLIENTS)
        while not self._is_over.is_set():
            async with session.get(url, headers={"If-None-Match": etag} if etag else {}) as answer:
                await answer.read()
                etag = answer.headers.get("ETag", "")
            self.answers += 1
            await asyncio.sleep(EVERY_S)


@contextmanager
def dashboard(frontier: str) -> Iterator[tuple[str, int]]:
    """Run `shoal serve`. Gives its address and its process id."""
    listen = f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "shoal", "serve", "--listen", listen, "--frontier", frontier]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as server:
        try:
            _wait_until_ready(f"http://{listen}/readyz")
            yield f"http://{listen}", server.pid
        finally:
            server.terminate()


def _wait_until_ready(url: str) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        with suppress(OSError), urllib.request.urlopen(url, timeout=START_S):
            return
        time.sleep(0.1)
    raise SystemExit(f"shoal serve did not answer at {url} within {START_S:.0f} s")


def watched(base: str, frontier: str) -> tuple[Run, Cost]:
    """Run a crawl that clients watch, and measure what serving them takes."""
    with dashboard(frontier) as (address, pid):
        onlookers = Onlookers(address)
        onlookers.start()
        before_s, began = procstat.cpu_s_of(pid), time.monotonic()
        run = crawls.shoal([base], frontier=frontier)
        spent_s, passed_s = procstat.cpu_s_of(pid) - before_s, time.monotonic() - began
        rss_mb = procstat.rss_mb_of(pid)
        onlookers.leave()
    return run, Cost(spent_s / passed_s, rss_mb, onlookers.answers)


def table_of(runs: dict[str, list[Run]], costs: list[Cost]) -> Table:
    """A table of medians, and of ratios to the crawl alone in the same round."""
    table = Table(
        "", "pages/s", "of alone", "serve: cores", "serve: MB", title="A crawl, looked at"
    )
    for name, own in runs.items():
        ratios = [a.pages_per_s / b.pages_per_s for a, b in zip(own, runs[ALONE], strict=True)]
        shown = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        speed = statistics.median(run.pages_per_s for run in own)
        cores = f"{statistics.median(cost.cores for cost in costs):.1%}" if name == WATCHED else ""
        memory = f"{max(cost.rss_mb for cost in costs):.0f}" if name == WATCHED else ""
        table.add_row(name, f"{speed:,.0f}", shown, cores, memory)
    return table


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.watched", description=__doc__)
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    runs: dict[str, list[Run]] = {ALONE: [], WATCHED: []}
    costs: list[Cost] = []
    with served(make_site(args.pages)) as base, redis_server(durable=True) as redis:
        for _ in range(args.rounds):
            redis.empty()
            runs[ALONE].append(crawls.shoal([base], frontier=redis.address))
            redis.empty()
            run, cost = watched(base, redis.address)
            runs[WATCHED].append(run)
            costs.append(cost)
    table = table_of(runs, costs)
    wide_console().print(table)
    keep("watched", msgspec.to_builtins({"runs": runs, "costs": costs}), table)


if __name__ == "__main__":
    main()
