"""`python -m benchmarks.on_sqlite`: measures the frontier in a file, at two depths in turn.

Raw figures go to benchmarks/out.
"""

from __future__ import annotations

import argparse
import statistics

from rich.table import Table

from benchmarks import procstat
from benchmarks.report import keep, wide_console

DEPTHS = (10_000, 1_000_000)

Figures = dict[str, list[dict[str, float]]]


def measure(rounds: int) -> Figures:
    """Measure operations per second at every depth."""
    runs: Figures = {}
    for _ in range(rounds):
        for depth in DEPTHS:
            runs.setdefault(f"{depth:,} queued", []).append(
                procstat.figures_of("frontier", str(depth))
            )
    return runs


def table_of(runs: Figures) -> Table:
    """A table of medians, and of how much slower the deep queue is."""
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
    parser = argparse.ArgumentParser(prog="python -m benchmarks.on_sqlite")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    runs = measure(args.rounds)
    console = wide_console()
    console.print(table_of(runs))
    console.print(f"raw figures: {keep('sqlite', runs)}")


if __name__ == "__main__":
    main()
