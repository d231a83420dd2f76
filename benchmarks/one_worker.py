"""A whole crawl by one worker in this process: on the results it is given, or on none.

Prints JSON: pages, seconds and CPU seconds of this process.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks.spider import Bench
from shoal import config, crawl
from shoal.results import open_results
from shoal.results.port import Batch, Results
from shoal.results.sqlite.store import SqliteResults
from shoal.runtime.eventloop import run

DISCARD = "discard"


class Discarding(SqliteResults):
    """Throws away what it is given: what is left is the price of all the rest."""

    async def save(self, crawl: str, batch: Batch) -> None:
        return


@asynccontextmanager
async def opened(address: str) -> AsyncIterator[Results]:
    """The store at an address, or none."""
    name, _, path = address.partition(":")
    results = Discarding(Path(path)) if name == DISCARD else open_results(address)
    try:
        yield results
    finally:
        await results.close()


def main() -> None:
    """Crawl and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("frontier")
    parser.add_argument("results", help=f"an address, or {DISCARD}:FILE")
    parser.add_argument("--name", default="bench")
    parser.add_argument("--concurrency", type=int, default=32)
    args = parser.parse_args()
    crawl_module = sys.modules[crawl.__module__]
    crawl_module.results_at = opened  # type: ignore[attr-defined]
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
    summary = run(crawl_module.run_crawl(Bench, settings, targets=None))
    figures = {
        "pages": summary.stats.done,
        "seconds": summary.seconds,
        "cpu_s": time.process_time() - cpu_s,
    }
    json.dump(figures, sys.stdout)


if __name__ == "__main__":
    main()
