"""Whole crawls of the shop: a bare loop, `shoal crawl` on SQLite, and `shoal crawl` on Redis."""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable

import msgspec
from rich.console import Console
from rich.table import Table

from benchmarks import procstat
from benchmarks.redis_server import Load, RedisServer, redis_server
from benchmarks.site import make_site, served

CONCURRENCY = 32
BARE = "bare loop"


class Run(msgspec.Struct):
    """One crawl of the whole site."""

    pages: int
    seconds: float
    cpu_s: float
    rss_mb: float
    workers: int = 1
    load: Load | None = None
    """What it was for the Redis server."""

    @property
    def pages_per_s(self) -> float:
        return self.pages / self.seconds

    @property
    def cpu_us_per_page(self) -> float:
        return self.cpu_s / self.pages * 1e6


Runs = dict[str, list[Run]]


def bare(base: str) -> Run:
    """The yardstick."""
    command = [sys.executable, "-m", "benchmarks.bare", base, "--concurrency", str(CONCURRENCY)]
    usage = procstat.run(command)
    figures = json.loads(usage.stdout)
    return Run(figures["pages"], figures["seconds"], usage.cpu_s, usage.peak_rss_mb)


def shoal(base: str, workers: int, frontier: str = "") -> Run:
    """A whole `shoal crawl`, its start and end included, with results in a new file; the frontier
    is in the same file, or where it is said to be."""
    os.environ["SHOAL_BENCH_URLS"] = f"{base}/index.html"
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        store = f"sqlite:///{folder}/bench.db"
        command = [sys.executable, "-m", "shoal", "crawl", "benchmarks.spider:Bench", "--json"]
        command += ["--allow-private", "--workers", str(workers)]
        command += ["--concurrency", str(CONCURRENCY)]
        command += ["--frontier", frontier or store, "--results", store]
        usage = procstat.run(command)
    if usage.exit_code:
        raise SystemExit(f"the crawl failed with exit code {usage.exit_code}")
    figures = json.loads(usage.stdout)
    return Run(figures["done"], figures["seconds"], usage.cpu_s, usage.peak_rss_mb, workers)


def shoal_on_redis(base: str, workers: int, server: RedisServer) -> Run:
    """The same on an empty Redis, and what that costs the server."""
    server.empty()
    before = server.load()
    run = shoal(base, workers, server.address)
    run.load = server.load() - before
    return run


def crawls(pages: int, rounds: int, console: Console, *, sqlite: bool) -> Runs:
    """All contestants, in turn, several times."""
    runs: Runs = {}
    with served(make_site(pages)) as base, redis_server() as server:
        contestants: dict[str, Callable[[], Run]] = {BARE: lambda: bare(base)}
        if sqlite:
            contestants["shoal, 1 worker"] = lambda: shoal(base, 1)
            contestants["shoal, 2 workers"] = lambda: shoal(base, 2)
        contestants["shoal on Redis, 1 worker"] = lambda: shoal_on_redis(base, 1, server)
        contestants["shoal on Redis, 2 workers"] = lambda: shoal_on_redis(base, 2, server)
        for number in range(1, rounds + 1):
            for name, contest in contestants.items():
                run = contest()
                runs.setdefault(name, []).append(run)
                console.print(f"round {number}: {name}: {run.pages_per_s:,.0f} pages/s")
    return runs


def crawl_table(runs: Runs) -> Table:
    """Medians, and each run's ratio to the bare loop of its round."""
    table = Table("", "pages/s", "CPU µs/page", "RSS MB", "of the bare loop", title="whole crawls")
    table.caption = "CPU and RSS without nginx and Redis"
    yardstick = runs[BARE]
    for name, own in runs.items():
        ratios = [r.pages_per_s / b.pages_per_s for r, b in zip(own, yardstick, strict=True)]
        table.add_row(
            name,
            f"{statistics.median(r.pages_per_s for r in own):,.0f}",
            f"{statistics.median(r.cpu_us_per_page for r in own):,.0f}",
            f"{max(r.rss_mb for r in own):.0f}",
            f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})",
        )
    return table


def load_table(runs: Runs) -> Table:
    """What the crawls on Redis were for the server, and so how many workers it carries."""
    table = Table(
        *("", "round trips per 50 pages", "scripts per 50 pages", "Redis CPU µs/page"),
        *("pages/s one core of Redis carries", "such workers"),
        title="what a crawl costs Redis (aim: 2 round trips per 50 pages)",
        caption="of all processes: the one that watches the crawl asks four times a second",
    )
    for name, own in runs.items():
        loads = [(run, run.load) for run in own if run.load]
        if not loads:
            continue
        cpu_s_per_page = statistics.median(load.cpu_s / run.pages for run, load in loads)
        pages_per_worker = statistics.median(run.pages_per_s / run.workers for run, _ in loads)
        table.add_row(
            name,
            f"{statistics.median(load.reads / run.pages * 50 for run, load in loads):.2f}",
            f"{statistics.median(load.scripts / run.pages * 50 for run, load in loads):.2f}",
            f"{cpu_s_per_page * 1e6:.0f}",
            f"{1 / cpu_s_per_page:,.0f}",
            f"{1 / cpu_s_per_page / pages_per_worker:.0f}",
        )
    return table
