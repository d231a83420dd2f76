"""`python -m benchmarks.publish FILE.json`: puts the figures of a `make bench` into the documents.

Draws docs/images/pages-per-second.svg, and writes the tables between the marks in README.md (what
the chart shows) and docs/performance.md (everything). After `--one-site`, it only writes the table
of that part.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from benchmarks import one_site
from benchmarks.chart import OURS, THEIRS, YARDSTICK, Bar, bars
from benchmarks.contest import BARE, EMBEDDED, FLEET, MANY, SCRAPY_REDIS, TWO
from benchmarks.crawls import Run, Runs
from benchmarks.report import markdown
from benchmarks.tables import figures, ratio

ROOT = Path(__file__).parent.parent
CHART = ROOT / "docs/images/pages-per-second.svg"
WHOLE, ONE_SITE = "make bench", "make bench, one site"
"""The texts of the marks."""
RATIOS = ("times scrapy-redis", "of the bare loop")

SHOWN = {
    SCRAPY_REDIS: THEIRS,
    f"{SCRAPY_REDIS}{TWO}": THEIRS,
    "Scrapy in memory": THEIRS,
    "Crawlee in memory": THEIRS,
    EMBEDDED: OURS,
    "Shoal, Redis + SQLite": OURS,
    FLEET: OURS,
    f"{FLEET}{TWO}": OURS,
    BARE: YARDSTICK,
}
"""The bars of the chart from the top, and their colours. Those not measured are left out."""


class Contest(msgspec.Struct):
    """The figures of one `make bench`."""

    command: str
    """The command that repeats it."""
    date: str
    machine: str
    pages: int
    small_pages: int
    runs: Runs


def chart_of(measured: Contest) -> str:
    """A chart of pages per second."""
    rows = [
        _bar(name, measured.runs[name], colour)
        for name, colour in SHOWN.items()
        if name in measured.runs
    ]
    rounds = len(measured.runs[BARE])
    note = f"{measured.date}; {measured.machine}; {rounds} rounds: median, smallest, largest"
    return bars("Pages per second", rows, note)


def _bar(name: str, own: Sequence[Run], colour: str) -> Bar:
    speeds = [run.pages_per_s for run in own]
    return Bar(name, statistics.median(speeds), colour, min(speeds), max(speeds))


def table_of(measured: Contest, names: Iterable[str]) -> str:
    """A table of some runs, with a sentence on how they were measured."""
    runs = measured.runs
    heads = ["", "pages/s", "CPU s per 1,000 pages", "RSS MB", *RATIOS]
    rows = [[name, *figures(runs[name]), *_ratios(runs, name)] for name in names if name in runs]
    return f"{_said(measured)}\n\n{markdown(heads, rows)}"


def one_site_table(measured: Contest) -> str:
    """A table of the contestants that share a host, with their aims."""
    table = markdown(one_site.HEADS, one_site.rows(measured.runs))
    aims = "".join(f"- {line.strip()}\n" for line in one_site.headlines(measured.runs))
    return f"{_said(measured)}\n\n{table}\n{aims}"


def _said(measured: Contest) -> str:
    return (
        f"Measured on {measured.date}: {measured.machine}, {len(measured.runs[BARE])} rounds,"
        f" {measured.pages:,} pages (the peers {measured.small_pages:,}), `{measured.command}`."
    )


def _ratios(runs: Runs, name: str) -> list[str]:
    if name.endswith(MANY):
        return ["", ratio(runs[name], runs[f"{BARE}{MANY}"])]
    return [ratio(runs[name], runs[yardstick]) for yardstick in (SCRAPY_REDIS, BARE)]


def replace_marked(page: Path, mark: str, text: str) -> None:
    """Replace the text between the marks of a page."""
    begin, end = f"<!-- {mark} -->", f"<!-- end of {mark} -->"
    before, found, rest = page.read_text().partition(begin)
    _, found_end, after = rest.partition(end)
    if not found or not found_end:
        raise SystemExit(f"benchmarks: {page} has no place for the table: {begin} ... {end}")
    page.write_text(f"{before}{begin}\n{text}{end}{after}")


def main() -> None:
    """Draw and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.publish", description=__doc__)
    parser.add_argument("file", type=Path)
    args = parser.parse_args()
    measured = msgspec.json.decode(args.file.read_bytes(), type=Contest)
    performance = ROOT / "docs/performance.md"
    if one_site.rows(measured.runs):
        replace_marked(performance, ONE_SITE, one_site_table(measured))
    if SCRAPY_REDIS not in measured.runs:
        return
    whole = [name for name in measured.runs if not one_site.is_shared(name)]
    replace_marked(ROOT / "README.md", WHOLE, table_of(measured, SHOWN))
    replace_marked(performance, WHOLE, table_of(measured, whole))
    CHART.parent.mkdir(parents=True, exist_ok=True)
    CHART.write_text(chart_of(measured))


if __name__ == "__main__":
    main()
