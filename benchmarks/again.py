"""`python -m benchmarks.again`: measures recrawling a site on which nothing has changed.

The product pages of the shop are crawled into a new store, then again in full, and again with
`--previous`. nginx sends ETag and Last-Modified. The frontier is a new file each time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack

import msgspec
from rich.table import Table

from benchmarks import procstat
from benchmarks.postgres_server import postgres_server
from benchmarks.report import keep, wide_console
from benchmarks.site import make_site, served
from benchmarks.spider import Bench, Product
from shoal import Page

FIRST, FULL, PREVIOUS = "the first time", "again, in full", "again, with previous"
STORES = ("sqlite", "postgres")


class Products(Bench):
    """Reads products, and follows no links."""

    name = "products"

    def start(self) -> list[str]:
        base, pages = os.environ["SHOAL_BENCH_URLS"].split(",")
        return [f"{base}/product/{number}.html" for number in range(1, int(pages) + 1)]

    def parse(self, page: Page) -> Iterator[Product]:
        for found in super().parse(page):
            if isinstance(found, Product):
                yield found


class Run(msgspec.Struct):
    """One crawl of all products."""

    pages: int
    unchanged: int
    body_bytes: int
    seconds: float
    cpu_s: float


def crawl(name: str, results: str, previous: str = "") -> Run:
    """Run a whole `shoal crawl` with one worker. Its start and end count."""
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        command = [sys.executable, "-m", "shoal", "crawl", "benchmarks.again:Products", "--json"]
        command += ["--allow-private", "--frontier", f"sqlite:///{folder}/queue.db"]
        command += ["--results", results, "--name", name]
        usage = procstat.run(command + (["--previous", previous] if previous else []))
    if usage.exit_code:
        raise SystemExit(f"the crawl failed with exit code {usage.exit_code}")
    told = json.loads(usage.stdout)
    figures = {name: told[name] for name in ("unchanged", "body_bytes", "seconds")}
    return Run(pages=told["done"], cpu_s=usage.cpu_s, **figures)


def rounds(results: str, count: int) -> dict[str, list[Run]]:
    """Crawl both ways in turn, `count` times. All rounds recrawl the same first crawl."""
    runs = {FIRST: [crawl("first", results)], FULL: [], PREVIOUS: []}
    for number in range(count):
        runs[FULL].append(crawl(f"full-{number}", results))
        runs[PREVIOUS].append(crawl(f"again-{number}", results, previous="first"))
    return runs


def table_of(store: str, runs: dict[str, list[Run]]) -> Table:
    """A table of the medians of all rounds."""
    table = Table("", "pages", "304", "MB read", "pages/s", "CPU µs per page", title=store)
    for name, several in runs.items():
        one = several[0]
        rate = statistics.median(run.pages / run.seconds for run in several)
        cpu_us = statistics.median(run.cpu_s / run.pages * 1e6 for run in several)
        read = f"{one.body_bytes / 1e6:,.1f}"
        table.add_row(
            name, f"{one.pages:,}", f"{one.unchanged:,}", read, f"{rate:,.0f}", f"{cpu_us:,.0f}"
        )
    return table


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--stores", nargs="*", choices=STORES, default=STORES)
    options = parser.parse_args()
    kept = {}
    with served(make_site()) as base, ExitStack() as stack:
        os.environ["SHOAL_BENCH_URLS"] = f"{base},{options.pages}"
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="shoal-bench-"))
        addresses = {"sqlite": f"sqlite:///{folder}/results.db"}
        if "postgres" in options.stores:
            addresses["postgres"] = stack.enter_context(postgres_server())
        for store in options.stores:
            runs = kept[store] = rounds(addresses[store], options.rounds)
            wide_console().print(table_of(store, runs))
    keep("again", kept)


if __name__ == "__main__":
    main()
