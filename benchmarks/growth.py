"""`python -m benchmarks.growth`: measures the cost of a page with up to five million known URLs.

Each frontier is filled with fingerprints first. Then one worker crawls the same small shop on each
in turn. Every round serves the shop on another port, so that its pages are new. Draws charts.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from benchmarks import crawls, procstat
from benchmarks.crawls import Run
from benchmarks.redis_server import RedisServer, redis_server
from benchmarks.report import keep, wide_console
from benchmarks.site import OUT, make_site, served_all
from benchmarks.tables import spread
from shoal.core.charts import Line, Logarithmic, lines

REDIS, FILE = "Redis", "SQLite"
KNOWN = (10_000, 1_000_000, 5_000_000)


class Depth(msgspec.Struct):
    """A number of known URLs on one kind of frontier, and the crawls there, round by round."""

    store: str
    known: int
    store_mb: float = 0.0
    """Memory of Redis, or the size of the file, before the first crawl."""
    runs: list[Run] = []

    def median(self, name: str) -> float:
        """The median of one figure of the runs."""
        return float(statistics.median(getattr(run, name) for run in self.runs))

    def times(self, least: Depth, name: str) -> str:
        """The ratio of a figure to that of another depth, over runs of the same rounds."""
        pairs = zip(self.runs, least.runs, strict=True)
        return spread([getattr(own, name) / getattr(other, name) for own, other in pairs])

    @property
    def rss_mb(self) -> float:
        return max(run.rss_mb for run in self.runs)


class Frontier:
    """The frontier of one depth, on a server or in a file of its own."""

    def __init__(self, depth: Depth, stack: ExitStack) -> None:
        self.depth = depth
        self._server: RedisServer | None = None
        if depth.store == REDIS:
            self._server = stack.enter_context(redis_server())
            self.address = self._server.address
        else:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="shoal-bench-"))
            self._file = Path(folder) / "frontier.db"
            self.address = f"sqlite:///{self._file}"

    def fill(self) -> None:
        """Fill it with the known URLs of its depth."""
        # In a process of its own, to keep this one small: see `Usage.peak_rss_mb`.
        procstat.figures_of("filling", self.address, str(self.depth.known))
        size = self._server.used_bytes() if self._server else self._file.stat().st_size
        self.depth.store_mb = size / 1e6

    def crawl(self, base: str) -> Run:
        """Crawl a shop whose pages are new to it."""
        done = sum(run.pages for run in self.depth.runs)
        before = self._server.load() if self._server else None
        own = crawls.shoal([base], frontier=self.address)
        own.pages -= done  # The crawl's counter includes earlier rounds.
        if self._server and before:
            own.load = self._server.load() - before
        self.depth.runs.append(own)
        return own


def measure(depths: Sequence[Depth], pages: int, rounds: int, console: Console) -> None:
    """Fill all frontiers, then crawl on each in turn."""
    with ExitStack() as stack:
        frontiers = [Frontier(depth, stack) for depth in depths]
        for frontier in frontiers:
            frontier.fill()
        bases = stack.enter_context(served_all([make_site(pages)] * rounds))
        for number, base in enumerate(bases, 1):
            for frontier in frontiers:
                own = frontier.crawl(base)
                name = f"{frontier.depth.store}, {frontier.depth.known:,} known"
                console.print(f"round {number}: {name}: {own.us_per_page:,.0f} µs per page")


def table_of(depths: Sequence[Depth]) -> Table:
    """A table of medians, and of ratios to the smallest depth of the same store and round."""
    table = Table(
        *("", "URLs known", "µs per page", "times", "CPU µs per page", "times"),
        *("Redis CPU µs per page", "worker MB", "store MB"),
        title="what a page costs, by what is known (aim: at most 1.3 times)",
        caption="CPU of all our processes, their start included; the store before the first crawl",
    )
    for depth in depths:
        least = next(other for other in depths if other.store == depth.store)
        table.add_row(
            depth.store,
            f"{depth.known:,}",
            f"{depth.median('us_per_page'):,.0f}",
            depth.times(least, "us_per_page"),
            f"{depth.median('cpu_us_per_page'):,.0f}",
            depth.times(least, "cpu_us_per_page"),
            f"{depth.median('redis_us_per_page'):,.0f}" if depth.store == REDIS else "",
            f"{depth.rss_mb:.0f}",
            f"{depth.store_mb:,.0f}",
        )
    return table


def draw(depths: Sequence[Depth], folder: Path) -> None:
    """Draw the time and the memory as two charts."""
    folder.mkdir(parents=True, exist_ok=True)
    stores = dict.fromkeys(depth.store for depth in depths)
    times = [
        Line(
            store,
            [(own.known, own.median("us_per_page")) for own in depths if own.store == store],
            has_dots=True,
        )
        for store in stores
    ]
    known = Logarithmic([depth.known for depth in depths])
    chart = lines("Time per page, µs", times, "URLs known before", wide=known)
    (folder / "growth.svg").write_text(chart)
    on_redis = [depth for depth in depths if depth.store == REDIS]
    sizes = [
        Line("Redis", [(depth.known, depth.store_mb) for depth in on_redis], has_dots=True),
        Line("one worker", [(depth.known, depth.rss_mb) for depth in on_redis], has_dots=True),
    ]
    known = Logarithmic([depth.known for depth in on_redis])
    chart = lines("Memory, MB", sizes, "URLs known before", wide=known)
    (folder / "growth-memory.svg").write_text(chart)


def main() -> None:
    """Measure, print, keep the raw figures, draw."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--pages", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--most", type=int, default=max(KNOWN), help="URLs known, at most")
    parser.add_argument("--charts", type=Path, default=OUT, help="the folder for the charts")
    args = parser.parse_args()
    console = wide_console()
    depths = [
        Depth(store, known) for store in (REDIS, FILE) for known in KNOWN if known <= args.most
    ]
    measure(depths, args.pages, args.rounds, console)
    table = table_of(depths)
    console.print(table)
    draw(depths, args.charts)
    kept = keep("growth", {"depths": depths}, table)
    console.print(f"raw figures: {kept}; charts: {args.charts}")


if __name__ == "__main__":
    main()
