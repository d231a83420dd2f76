"""`python -m benchmarks.on_scrapy`: runs a spider on Scrapy's own queue, Shoal and scrapy-redis.

Raw figures go to benchmarks/out. The peers are installed there, too, the first time.
"""

from __future__ import annotations

import argparse
from typing import Any

from rich.console import Console

from benchmarks.redis_server import redis_server
from benchmarks.report import keep, wide_console
from benchmarks.scrapy_crawls import crawl_table, crawls
from benchmarks.scrapy_memory import size_table, sizes
from benchmarks.site import make_site, served
from benchmarks.tables import load_table

PAGES = 5_000


def measure(pages: int, rounds: int, console: Console) -> dict[str, Any]:
    """Measure whole crawls and the memory of queued requests. Print the tables."""
    with served(make_site(pages)) as base, redis_server() as server:
        runs = crawls(pages, rounds, base, server, console)
        console.print(crawl_table(runs))
        console.print(load_table(runs))
        found = sizes(base, server)
        console.print(size_table(found))
    return {"scrapy_crawls": runs, "scrapy_memory": found}


def main() -> None:
    """Measure, print, keep the raw figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.on_scrapy")
    parser.add_argument("--pages", type=int, default=PAGES)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    console = wide_console()
    console.print(f"raw figures: {keep('scrapy', measure(args.pages, args.rounds, console))}")


if __name__ == "__main__":
    main()
