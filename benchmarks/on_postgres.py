"""`python -m benchmarks.on_postgres`: measures saving items to PostgreSQL.

Rows per second compared with raw statements, and whole crawls compared with the same crawls whose
results are thrown away. Raw figures go to benchmarks/out.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import procstat
from benchmarks.one_worker import DISCARD
from benchmarks.postgres_server import postgres_server
from benchmarks.redis_server import redis_server
from benchmarks.report import keep, wide_console
from benchmarks.site import make_site, served
from benchmarks.tables import spread

YARDSTICKS = {
    "of COPY, same tables": "raw, COPY + upsert of 1,000, same tables, with history",
    "of COPY, same table": "raw, COPY + upsert of 1,000, same table",
    "of COPY, bare table": "raw, COPY + upsert of 1,000, bare table",
}


def measure(pages: int, rounds: int, console: Console) -> dict[str, Any]:
    """Measure both parts, and print their tables."""
    rows = procstat.figures_of("postgres_rows", f"--rounds={rounds}")
    console.print(row_table(rows))
    runs = crawls(pages, rounds, console)
    console.print(crawl_table(runs))
    return {"postgres_rows": rows, "postgres_crawls": runs}


def row_table(rounds: list[dict[str, float]]) -> Table:
    """A table of medians, and of ratios to the raw statements of the same round."""
    table = Table(
        *("", "rows/s", *YARDSTICKS),
        title="items into PostgreSQL (aim: 0.8 of COPY + upsert)",
        caption="the bare table has a key and nothing else; Shoal's has five more indexes."
        " With history each item is two rows",
    )
    for name in rounds[0]:
        ratios = (
            spread([run[name] / run[other] for run in rounds]) for other in YARDSTICKS.values()
        )
        table.add_row(name, f"{statistics.median(run[name] for run in rounds):,.0f}", *ratios)
    return table


def crawls(pages: int, rounds: int, console: Console) -> dict[str, list[dict[str, float]]]:
    """Crawl with one worker and the queue on Redis. Results go to PostgreSQL or are thrown away."""
    runs: dict[str, list[dict[str, float]]] = {}
    with (
        served(make_site(pages)) as base,
        redis_server() as redis,
        postgres_server() as postgres,
        tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder,
    ):
        os.environ["SHOAL_BENCH_URLS"] = f"{base}/index.html"
        contestants = {"thrown away": f"{DISCARD}:{folder}/bench.db", "PostgreSQL": postgres}
        for number in range(1, rounds + 1):
            for name, results in contestants.items():
                redis.empty()
                run = procstat.figures_of(
                    "one_worker", redis.address, results, f"--name=bench-{number}"
                )
                runs.setdefault(name, []).append(run)
                console.print(
                    f"round {number}: {name}: {run['pages'] / run['seconds']:,.0f} pages/s"
                )
    return runs


def crawl_table(runs: dict[str, list[dict[str, float]]]) -> Table:
    """A table of medians, and of ratios to the crawl of the same round that keeps nothing."""
    table = Table(
        *("results", "pages/s", "CPU µs/page", "of thrown away"),
        title="whole crawls, one worker, queue on Redis (aim: 0.9)",
        caption="CPU of the worker alone",
    )
    for name, own in runs.items():
        speeds = [run["pages"] / run["seconds"] for run in own]
        yardstick = [run["pages"] / run["seconds"] for run in runs["thrown away"]]
        table.add_row(
            name,
            f"{statistics.median(speeds):,.0f}",
            f"{statistics.median(run['cpu_s'] / run['pages'] * 1e6 for run in own):,.0f}",
            spread([a / b for a, b in zip(speeds, yardstick, strict=True)]),
        )
    return table


def main() -> None:
    """Measure, print, keep the raw figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.on_postgres")
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    console = wide_console()
    figures = measure(args.pages, args.rounds, console)
    console.print(f"raw figures: {keep('postgres', figures)}")


if __name__ == "__main__":
    main()
