"""`make bench`: crawls beside a bare loop on the same pages, and the frontiers alone.

Runs are interleaved, so that a machine that gets slower does so for everybody. Times differ from
machine to machine: read the ratios. Raw figures are kept in benchmarks/out.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys

from rich.table import Table

from benchmarks import on_postgres, on_redis, procstat
from benchmarks.crawls import crawl_table, crawls, load_table
from benchmarks.report import keep, wide_console

DEPTHS = (10_000, 1_000_000)


def frontiers(rounds: int) -> dict[str, list[dict[str, float]]]:
    """The frontier on SQLite at every depth, interleaved."""
    runs: dict[str, list[dict[str, float]]] = {}
    for _ in range(rounds):
        for depth in DEPTHS:
            usage = procstat.run([sys.executable, "-m", "benchmarks.frontier", str(depth)])
            runs.setdefault(f"{depth:,} queued", []).append(json.loads(usage.stdout))
    return runs


def frontier_table(runs: dict[str, list[dict[str, float]]]) -> Table:
    """Medians, and how much slower the deep queue is."""
    names = list(next(iter(runs.values()))[0])
    table = Table("", *(f"{name}/s" for name in names), title="SQLite alone, batches of 100")
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
    parser.add_argument("--deep", action="store_true", help="also 5 million URLs on Redis")
    args = parser.parse_args()
    console = wide_console()
    runs = crawls(args.pages, args.rounds, console, sqlite=True)
    console.print(crawl_table(runs))
    console.print(load_table(runs))
    depths = frontiers(args.rounds)
    console.print(frontier_table(depths))
    fleet = on_redis.measure(args.rounds, console, deep=args.deep)
    database = on_postgres.measure(args.pages, args.rounds, console)
    kept = keep("bench", {"crawls": runs, "frontier": depths} | fleet | database)
    console.print(f"raw figures: {kept}")


if __name__ == "__main__":
    main()
