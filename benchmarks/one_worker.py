"""Runs a whole crawl with one worker in this process. Results may be thrown away.

Prints JSON: pages, seconds and CPU seconds of this process.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from benchmarks.spider import Bench
from shoal import config
from shoal.fleet import stores
from shoal.fleet.crawl import run_crawl
from shoal.results import open_results
from shoal.results.port import Batch, Results
from shoal.results.sqlite.store import SqliteResults
from shoal.runtime.eventloop import run

DISCARD = "discard"


class Discarding(SqliteResults):
    """Throws away all results, to measure what a crawl costs without saving them."""

    async def save(self, crawl: str, batch: Batch) -> None:
        return


def opened(address: str) -> Results:
    """The store at an address. Results for `discard:FILE` are thrown away."""
    name, _, path = address.partition(":")
    return Discarding(Path(path)) if name == DISCARD else open_results(address)


def main() -> None:
    """Crawl and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("frontier")
    parser.add_argument("results", help=f"an address, or {DISCARD}:FILE")
    parser.add_argument("--name", default="bench")
    parser.add_argument("--concurrency", type=int, default=32)
    args = parser.parse_args()
    stores.open_results = opened  # type: ignore[attr-defined]
    settings = config.build(
        {
            "frontier": args.frontier,
            "results": args.results,
            "name": args.name,
            "concurrency": args.concurrency,
            "allow_private": True,
            "rate": Bench.rate,
            "robots": Bench.robots,
            "concurrency_per_host": Bench.concurrency_per_host,
        }
    )
    cpu_s = time.process_time()
    summary = run(run_crawl(Bench, settings, targets=None))
    figures = {
        "pages": summary.stats.done,
        "seconds": summary.seconds,
        "cpu_s": time.process_time() - cpu_s,
    }
    json.dump(figures, sys.stdout)


if __name__ == "__main__":
    main()
