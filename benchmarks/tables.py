"""Makes tables of whole crawls: medians, and ratios of runs in the same round."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from rich.table import Table

from benchmarks.crawls import Run, Runs


def spread(values: Sequence[float]) -> str:
    """The median, the smallest and the largest value, to print. A single value stands alone."""
    if len(values) == 1:
        return f"{values[0]:.2f}"
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def ratios(own: Sequence[Run], yardstick: Sequence[Run]) -> list[float]:
    """How many times as fast as the yardstick each run was, round by round."""
    return [a.pages_per_s / b.pages_per_s for a, b in zip(own, yardstick, strict=True)]


def ratio(own: Sequence[Run], yardstick: Sequence[Run]) -> str:
    """The ratios to the yardstick, to print."""
    return spread(ratios(own, yardstick))


def parts_of(run: Run) -> list[float]:
    """The pages of each process, relative to an even share."""
    return [pages * len(run.by_each) / run.pages for pages in run.by_each]


def part_range(parts: Iterable[float]) -> str:
    """The smallest and the largest part, to print."""
    found = [*parts]
    return f"{min(found):.2f} to {max(found):.2f}"


def crawl_table(runs: Runs, yardsticks: dict[str, str], title: str) -> Table:
    """One row for each contestant, one column for the ratio to each yardstick (by its heading)."""
    table = Table("", "pages/s", "CPU s per 1,000 pages", "RSS MB", *yardsticks, title=title)
    table.caption = "CPU and RSS without those of nginx, Redis and PostgreSQL"
    for name, own in runs.items():
        table.add_row(
            name,
            *figures(own),
            *(ratio(own, runs[yardstick]) for yardstick in yardsticks.values()),
        )
    return table


def figures(own: Sequence[Run]) -> list[str]:
    """Pages per second, CPU seconds per 1,000 pages, and megabytes."""
    return [
        f"{statistics.median(run.pages_per_s for run in own):,.0f}",
        f"{statistics.median(run.cpu_us_per_page for run in own) / 1e3:.2f}",
        f"{max(run.rss_mb for run in own):.0f}",
    ]


def load_table(runs: Runs) -> Table:
    """A table of the load that crawls put on Redis, and of how many workers one core carries."""
    table = Table(
        *("", "round trips per 50 pages", "scripts per 50 pages", "Redis CPU µs/page"),
        *("pages/s one core of Redis carries", "such workers"),
        title="what a crawl costs Redis (aim: 2 round trips per 50 pages)",
        caption="of all processes: the one that watches the crawl asks four times a second",
    )
    for name, own in runs.items():
        loads = [(run, run.load) for run in own if run.load]
        if not loads:
            continue
        cpu_s_per_page = statistics.median(load.cpu_s / run.pages for run, load in loads)
        pages_per_worker = statistics.median(run.pages_per_s / run.workers for run, _ in loads)
        table.add_row(
            name,
            f"{statistics.median(load.reads / run.pages * 50 for run, load in loads):.2f}",
            f"{statistics.median(load.scripts / run.pages * 50 for run, load in loads):.2f}",
            f"{cpu_s_per_page * 1e6:.0f}",
            f"{1 / cpu_s_per_page:,.0f}",
            f"{1 / cpu_s_per_page / pages_per_worker:.0f}",
        )
    return table
