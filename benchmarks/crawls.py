"""Runs whole crawls of the shop, in new processes: the bare loop, `shoal crawl`, Crawlee.

For all of them, time is measured from the first page to the end of the crawl, without the start of
Python. CPU and memory are those of all processes from their start.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks import peers, procstat
from benchmarks.redis_server import Load, RedisServer

CONCURRENCY = 32
NAME = "bench"


class Run(msgspec.Struct):
    """One crawl of a whole site."""

    pages: int
    seconds: float
    """From the first page to the end."""
    cpu_s: float
    rss_mb: float
    """The peak of the largest process."""
    workers: int = 1
    whole_s: float = 0.0
    """Like `seconds`, but with the start of all processes."""
    busy_cores: float | None = None
    """Cores in use from the first page on, by everything on this machine, servers included."""
    load: Load | None = None
    """What the crawl cost the Redis server."""
    by_each: list[int] = []
    """The pages of each process, where that is known."""

    @property
    def pages_per_s(self) -> float:
        return self.pages / self.seconds

    @property
    def us_per_page(self) -> float:
        return self.seconds / self.pages * 1e6

    @property
    def cpu_us_per_page(self) -> float:
        return self.cpu_s / self.pages * 1e6

    @property
    def redis_us_per_page(self) -> float:
        """CPU of the Redis server per page."""
        return self.load.cpu_s / self.pages * 1e6 if self.load else 0.0


Runs = dict[str, list[Run]]


class Setup(msgspec.Struct, frozen=True):
    """Options of `shoal crawl`, apart from the addresses of its stores."""

    workers: int = 1
    concurrency: int = CONCURRENCY
    per_host: int | None = None
    """Requests in flight per host. None: as the spider says, which is practically no limit."""
    spider: str = "Bench"

    def options(self) -> list[str]:
        """The same as options of the command line."""
        options = ["--workers", f"{self.workers}", "--concurrency", f"{self.concurrency}"]
        if self.per_host is not None:
            options += ["--concurrency-per-host", f"{self.per_host}"]
        return options


ONE, TWO = Setup(), Setup(workers=2)


def bare(bases: Sequence[str], in_flight: int = CONCURRENCY, *, own_client: bool = False) -> Run:
    """Run the bare loop."""
    command = [sys.executable, "-m", "benchmarks.bare", *bases, "--concurrency", f"{in_flight}"]
    return _in_one_process([*command, "--own-client"] if own_client else command)


def crawlee(base: str) -> Run:
    """Run Crawlee, in memory."""
    return _in_one_process([peers.python(), "-m", "benchmarks.crawlee_crawl", base])


def _in_one_process(command: Sequence[str]) -> Run:
    usage = _succeeding(command)
    told = json.loads(usage.stdout)
    return Run(told["pages"], told["seconds"], usage.cpu_s, usage.peak_rss_mb, whole_s=usage.wall_s)


def _succeeding(command: Sequence[str]) -> procstat.Usage:
    usage = procstat.run(command)
    if usage.exit_code:
        raise SystemExit(f"the crawl failed with exit code {usage.exit_code}")
    return usage


def shoal(
    bases: Sequence[str],
    setup: Setup = ONE,
    *,
    frontier: str = "",
    state: str = "",
    results: str = "",
) -> Run:
    """Run a whole `shoal crawl`. Without addresses, queue and items go to a new file."""
    os.environ["SHOAL_BENCH_URLS"] = ",".join(f"{base}/index.html" for base in bases)
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        os.environ["SHOAL_BENCH_CLOCK"] = folder
        store = f"sqlite:///{folder}/bench.db"
        command = [sys.executable, "-m", "shoal", "crawl", f"benchmarks.spider:{setup.spider}"]
        command += ["--json", "--allow-private", "--name", NAME, *setup.options()]
        command += ["--frontier", frontier or store, "--results", results or store]
        command += ["--state", state] if state else []
        usage = _succeeding(command)
        ended, busy_s = time.time(), procstat.busy_s()
        notes = [note.read_text().split() for note in Path(folder).glob("*.began")]
    began, busy_before_s = min((float(at), float(busy)) for at, busy in notes)
    told = json.loads(usage.stdout)
    return Run(
        pages=told["done"],
        seconds=told["finished_at"] - began,
        cpu_s=usage.cpu_s,
        rss_mb=usage.peak_rss_mb,
        workers=setup.workers,
        whole_s=usage.wall_s,
        busy_cores=(busy_s - busy_before_s) / (ended - began),
    )


def shoal_on_redis(
    bases: Sequence[str], server: RedisServer, setup: Setup = ONE, *, results: str = ""
) -> Run:
    """The same with the queue on an emptied Redis. The run includes the load of that server."""
    server.empty()
    before = server.load()
    run = shoal(bases, setup, frontier=server.address, results=results)
    run.load = server.load() - before
    return run
