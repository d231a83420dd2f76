"""`make bench`: the embedded crawl beside a bare loop on the same pages, and the frontier alone.

Runs are interleaved, so that a machine that gets slower does so for everybody. Times differ from
machine to machine: read the ratios. Raw figures are kept in benchmarks/out.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable

import msgspec
from rich.console import Console
from rich.table import Table

from benchmarks import procstat
from benchmarks.site import OUT, make_site, served

CONCURRENCY = 32
DEPTHS = (10_000, 1_000_000)


class Run(msgspec.Struct):
    """One crawl of the whole site."""

    pages: int
    seconds: float
    cpu_s: float
    rss_mb: float

    @property
    def pages_per_s(self) -> float:
        return self.pages / self.seconds

    @property
    def cpu_us_per_page(self) -> float:
        return self.cpu_s / self.pages * 1e6


def bare(base: str) -> Run:
    """The yardstick."""
    command = [sys.executable, "-m", "benchmarks.bare", base, "--concurrency", str(CONCURRENCY)]
    usage = procstat.run(command)
    figures = json.loads(usage.stdout)
    return Run(figures["pages"], figures["seconds"], usage.cpu_s, usage.peak_rss_mb)


def shoal(base: str, workers: int) -> Run:
    """A whole `shoal crawl`, its start and end included, on a new file."""
    os.environ["SHOAL_BENCH_URLS"] = f"{base}/index.html"
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        store = f"sqlite:///{folder}/bench.db"
        command = [sys.executable, "-m", "shoal", "crawl", "benchmarks.spider:Bench", "--json"]
        command += ["--allow-private", "--workers", str(workers)]
        command += ["--concurrency", str(CONCURRENCY), "--frontier", store, "--results", store]
        usage = procstat.run(command)
    if usage.exit_code:
        raise SystemExit(f"the crawl failed with exit code {usage.exit_code}")
    figures = json.loads(usage.stdout)
    return Run(figures["done"], figures["seconds"], usage.cpu_s, usage.peak_rss_mb)


def crawls(pages: int, rounds: int, console: Console) -> dict[str, list[Run]]:
    """All contestants, in turn, several times."""
    runs: dict[str, list[Run]] = {}
    with served(make_site(pages)) as base:
        contestants: dict[str, Callable[[], Run]] = {
            "bare loop": lambda: bare(base),
            "shoal, 1 worker": lambda: shoal(base, 1),
            "shoal, 2 workers": lambda: shoal(base, 2),
        }
        for number in range(1, rounds + 1):
            for name, contest in contestants.items():
                run = contest()
                runs.setdefault(name, []).append(run)
                console.print(f"round {number}: {name}: {run.pages_per_s:,.0f} pages/s")
    return runs


def crawl_table(runs: dict[str, list[Run]]) -> Table:
    """Medians, and each run's ratio to the bare loop of its round."""
    table = Table("", "pages/s", "CPU µs/page", "RSS MB", "of the bare loop", title="whole crawls")
    yardstick = runs["bare loop"]
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


def frontiers(rounds: int) -> dict[str, list[dict[str, float]]]:
    """The frontier at every depth, interleaved."""
    runs: dict[str, list[dict[str, float]]] = {}
    for _ in range(rounds):
        for depth in DEPTHS:
            usage = procstat.run([sys.executable, "-m", "benchmarks.frontier", str(depth)])
            runs.setdefault(f"{depth:,} queued", []).append(json.loads(usage.stdout))
    return runs


def frontier_table(runs: dict[str, list[dict[str, float]]]) -> Table:
    """Medians, and how much slower the deep queue is."""
    names = list(next(iter(runs.values()))[0])
    table = Table("", *(f"{name}/s" for name in names), title="the frontier alone, batches of 100")
    medians = {
        depth: [statistics.median(run[name] for run in own) for name in names]
        for depth, own in runs.items()
    }
    for depth, values in medians.items():
        table.add_row(depth, *(f"{value:,.0f}" for value in values))
    shallow, deep = medians.values()
    slower = (f"{few / many:.2f}" for few, many in zip(shallow, deep, strict=True))
    table.add_row("times slower", *slower)
    return table


def main() -> None:
    """Measure, print, keep the raw figures."""
    parser = argparse.ArgumentParser(prog="make bench")
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    console = Console()
    runs = crawls(args.pages, args.rounds, console)
    console.print(crawl_table(runs))
    depths = frontiers(args.rounds)
    console.print(frontier_table(depths))
    target = OUT / f"bench-{time.strftime('%Y%m%d-%H%M%S')}.json"
    target.write_bytes(msgspec.json.encode({"crawls": runs, "frontier": depths}))
    console.print(f"raw figures: {target}")


if __name__ == "__main__":
    main()
