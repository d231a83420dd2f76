"""`python -m benchmarks.on_redis`: measures the frontier on Redis by itself.

With --deep, also with 5 million URLs. Every part runs in a process of its own, on a Redis of its
own. Raw figures go to benchmarks/out. Whole crawls on Redis are part of `make bench`.
"""

from __future__ import annotations

import argparse
import statistics
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import procstat
from benchmarks.report import keep, wide_console

STEPS = ("new", "duplicate", "lease", "finish")
AIMS = "aims: 160 queued, 60 seen exactly, 2.5 in a Bloom filter"


def measure(rounds: int, console: Console, *, deep: bool) -> dict[str, Any]:
    """Measure speed beside raw calls, speed by depth, and memory. Print the tables."""
    frontier = procstat.figures_of("redis_frontier", f"--rounds={rounds}")
    console.print(rate_table(frontier))
    depth = procstat.figures_of("redis_depth", f"--rounds={rounds}", *(["--deep"] if deep else []))
    console.print(depth_table(depth))
    memory = procstat.figures_of("redis_memory")
    console.print(memory_table(memory))
    return {"redis_frontier": frontier, "redis_depth": depth, "redis_memory": memory}


def rate_table(rounds: list[dict[str, Any]]) -> Table:
    """A table of medians, and of ratios to the raw calls of the same round."""
    table = Table(
        *("clients", "", *(f"{step}/s" for step in STEPS)),
        title="Redis: URLs/s in batches of 100 over 20 hosts (aim: half of the raw call)",
        caption="in brackets: microseconds of the server's time per URL",
    )
    for clients in sorted({figures["clients"] for figures in rounds}):
        own = [figures for figures in rounds if figures["clients"] == clients]
        for name in ("raw", "shoal"):
            values = (_rate([figures[name][step] for figures in own]) for step in STEPS)
            table.add_row(str(clients), name, *values)
        table.add_row(str(clients), "ratio", *(_ratio(own, step) for step in STEPS))
    return table


def _rate(figures: list[dict[str, float]]) -> str:
    speed = statistics.median(each["urls_per_s"] for each in figures)
    server_us = statistics.median(each["server_us"] for each in figures)
    return f"{speed:,.0f} ({server_us:.1f})"


def _ratio(rounds: list[dict[str, Any]], step: str) -> str:
    each = [run["shoal"][step]["urls_per_s"] / run["raw"][step]["urls_per_s"] for run in rounds]
    return f"{statistics.median(each):.2f} ({min(each):.2f} to {max(each):.2f})"


def depth_table(depths: list[dict[str, Any]]) -> Table:
    """A table of medians, and of how much slower each is than the shallowest crawl over the same
    hosts. A hundred thousand hosts are compared with a thousand: in both, the URLs of a batch are
    all of different hosts."""
    table = Table(
        *("queued", "hosts", "lease/s", "times slower", "finish/s", "times slower"),
        title="Redis: by depth (aim: at most 1.3 times slower than 10,000)",
        caption="in brackets: microseconds of the server's time per URL",
    )
    shallow = {depth["hosts"]: depth for depth in reversed(depths)}
    for depth in depths:
        first = shallow[min(depth["hosts"], 1_000)]
        row = [f"{depth['queued']:,}", f"{depth['hosts']:,}"]
        for step in ("lease", "finish"):
            row += [_rate(depth[step]), _slower(first[step], depth[step])]
        table.add_row(*row)
    return table


def _slower(first: list[dict[str, float]], own: list[dict[str, float]]) -> str:
    each = [a["urls_per_s"] / b["urls_per_s"] for a, b in zip(first, own, strict=True)]
    return f"{statistics.median(each):.2f}"


def memory_table(sizes: list[dict[str, Any]]) -> Table:
    """A table of bytes per URL."""
    table = Table(
        *("known URLs", "hosts", "queued", "leased", "seen", "seen, at the worst"),
        title=f"Redis: bytes per URL ({AIMS})",
        caption="the worst: just after a table has doubled, or a filter has got a new layer;"
        " a lease is beside what is seen",
    )
    for size in sizes:
        table.add_row(
            size["seen"],
            f"{size['hosts']:,}",
            f"{size['queued']:.0f}",
            f"{size['leased']:.0f}",
            f"{size['seen_before']:.1f} (at {size['urls_before']:,})",
            f"{size['seen_after']:.1f} (at {size['urls_after']:,})",
        )
    return table


def main() -> None:
    """Measure, print, keep the raw figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.on_redis")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--deep", action="store_true", help="also 5 million URLs: takes minutes")
    args = parser.parse_args()
    console = wide_console()
    figures = measure(args.rounds, console, deep=args.deep)
    console.print(f"raw figures: {keep('redis', figures)}")


if __name__ == "__main__":
    main()
