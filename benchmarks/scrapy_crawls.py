"""Runs whole Scrapy crawls of the shop: in memory, on Shoal, and on scrapy-redis."""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec
from rich.console import Console
from rich.table import Table

from benchmarks import peers, procstat
from benchmarks.crawls import Run, Runs
from benchmarks.redis_server import RedisServer
from benchmarks.tables import ratio


class Contestant(msgspec.Struct, frozen=True):
    """One way to run the spider."""

    scheduler: str
    processes: int = 1
    store_items: bool = False
    tuned: bool = False
    room: int | None = None
    """Requests in flight per domain, on Shoal for all processes together. None: 32 for each."""


MEMORY = "Scrapy, in memory"
PEER = "scrapy-redis"
CONTESTANTS = {
    MEMORY: Contestant("memory"),
    "shoal.scrapy": Contestant("shoal"),
    PEER: Contestant("scrapy-redis"),
    "scrapy-redis, FifoQueue": Contestant("scrapy-redis-fifo"),
    "shoal.scrapy, items to SQLite": Contestant("shoal", store_items=True),
    "scrapy-redis, items to Redis": Contestant("scrapy-redis", store_items=True),
    "shoal.scrapy, 2 processes": Contestant("shoal", processes=2),
    "scrapy-redis, 2 processes": Contestant("scrapy-redis", processes=2),
}
"""All contestants by name. FifoQueue, without priorities, should be scrapy-redis's fastest."""


def crawl(contestant: Contestant, base: str, server: RedisServer) -> Run:
    """Run a whole crawl, timed from the first page to the last."""
    server.empty()
    before = server.load()
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        commands = [
            _command(contestant, base, server, folder, part) for part in range(contestant.processes)
        ]
        with ThreadPoolExecutor(len(commands)) as threads:
            usages = list(threads.map(procstat.run, commands))
    run = _run_of(usages)
    if contestant.scheduler != "memory":
        run.load = server.load() - before
    return run


def _command(
    contestant: Contestant, base: str, server: RedisServer, folder: str, part: int
) -> list[str]:
    command = [python_for(contestant.scheduler), "-m", "benchmarks.scrapy_crawl"]
    command += [contestant.scheduler, base, server.address, folder, "--part", str(part)]
    command += ["--processes", str(contestant.processes)]
    command += ["--room", str(contestant.room)] if contestant.room else []
    command += ["--store-items"] if contestant.store_items else []
    return [*command, "--tuned"] if contestant.tuned else command


def python_for(scheduler: str) -> str:
    """The Python in whose environment a scheduler is installed."""
    return peers.python() if scheduler.startswith(PEER) else sys.executable


def _run_of(usages: Sequence[procstat.Usage]) -> Run:
    """Combine all processes into one run."""
    if any(usage.exit_code for usage in usages):
        raise SystemExit("a crawl failed")
    figures = [json.loads(usage.stdout) for usage in usages]
    begun = [own for own in figures if own["pages"]]
    return Run(
        pages=sum(own["pages"] for own in figures),
        seconds=max(own["ended"] for own in figures) - min(own["began"] for own in begun),
        cpu_s=sum(usage.cpu_s for usage in usages),
        rss_mb=max(usage.peak_rss_mb for usage in usages),
        workers=len(usages),
        whole_s=max(usage.wall_s for usage in usages),
        by_each=[own["pages"] for own in figures],
    )


def crawls(pages: int, rounds: int, base: str, server: RedisServer, console: Console) -> Runs:
    """Run all contestants in turn, several times. A run that loses pages is marked, but counts."""
    runs: Runs = {}
    for number in range(1, rounds + 1):
        for name, contestant in CONTESTANTS.items():
            run = crawl(contestant, base, server)
            runs.setdefault(name, []).append(run)
            short = f" ({run.pages} of {pages + 1} pages!)" if run.pages <= pages else ""
            console.print(f"round {number}: {name}: {run.pages_per_s:,.0f} pages/s{short}")
    return runs


def crawl_table(runs: Runs) -> Table:
    """A table of medians, and of ratios to the peers' runs of the same round."""
    table = Table(
        *("", "pages/s", "CPU s per 1,000 pages", "RSS MB", "of in memory", f"of {PEER}"),
        title="Scrapy, whole crawls (aims: 1.0 of in memory, 1.6 of scrapy-redis)",
        caption="CPU and RSS without nginx and Redis, with the start of Python; RSS of the largest"
        " process; items go to a file unless said",
    )
    for name, own in runs.items():
        table.add_row(
            name,
            f"{statistics.median(run.pages_per_s for run in own):,.0f}",
            f"{statistics.median(run.cpu_us_per_page for run in own) / 1e3:.2f}",
            f"{max(run.rss_mb for run in own):.0f}",
            ratio(own, runs[MEMORY]),
            ratio(own, runs[PEER]),
        )
    return table
