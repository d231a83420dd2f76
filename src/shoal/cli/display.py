"""What people see: lines, tables, the progress line.

All that is shown goes through `say`, `say_lines`, `text`, `table` or `print_json`: pages choose
what their URLs say, and nothing of that is taken for markup or reaches the terminal as an order.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from shoal.coordinator.lateness import remaining_s
from shoal.core import plaintext
from shoal.core.causes import lines_of
from shoal.fleet.crawl import Summary, Watch
from shoal.frontier.values import CrawlState, Host, Pulse, Stats
from shoal.insight.explain_rows import Row
from shoal.insight.figures import counted, duration
from shoal.insight.rows import (
    CRAWL_COLUMNS,
    HOST_COLUMNS,
    WORKER_COLUMNS,
    bytes_read,
    crawl_row,
    host_row,
    status_rows,
    worker_row,
)
from shoal.insight.status import FEW_HOSTS, Snapshot, failure_concentration
from shoal.runtime.patience import NowAndThen

LOG_EVERY_S = 10.0
TABLE_WIDTH = 120
REPAIR = "pause the crawl, then shoal seed CRAWL --repair"
"""What those are told who have emptied a broker's queues."""

log = logging.getLogger("shoal")


def console(*, stderr: bool = False) -> Console:
    """A terminal, or what stands in its place. Brackets are brackets to it."""
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def out() -> Console:
    """The console for answers. A table that is too wide for a terminal is wrapped: ugly, but names
    and numbers that are cut off are useless."""
    wide = console()
    wide.soft_wrap = True
    wide.width = max(wide.width, TABLE_WIDTH)
    return wide


def say(line: str, *, err: bool = False) -> None:
    """Print one line: whatever is in it, it stays one."""
    stream = sys.stderr if err else sys.stdout
    stream.write(plaintext.one_line(line) + "\n")
    stream.flush()


def say_lines(text: str) -> None:
    """Print text of several lines: help, a traceback."""
    sys.stdout.write(plaintext.lines(text) + "\n")


def print_json(value: Any) -> None:
    """An answer for scripts."""
    json = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    sys.stdout.write(plaintext.in_json(json) + "\n")


def text(line: str, style: str = "") -> Text:
    """One line for a console."""
    return Text(plaintext.one_line(line), style=style)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table without lines around its cells."""
    made = Table(*columns, box=None)
    for row in rows:
        made.add_row(*map(text, row))
    return made


@contextmanager
def progress(*, quiet: bool) -> Iterator[Watch]:
    """Shows how far a crawl is: a live line on a terminal, a log line now and then elsewhere."""
    if quiet:
        yield lambda stats: None
    elif (terminal := console(stderr=True)).is_terminal:
        with Live(console=terminal, refresh_per_second=8, transient=True) as live:
            yield lambda stats: live.update(text(progress_line(stats), "bold"))
    else:
        yield _logging()


def _logging() -> Watch:
    timer = log_timer()

    def watch(stats: Stats) -> None:
        if timer.is_due():
            log.info(progress_line(stats))

    return watch


def log_timer() -> NowAndThen:
    """When a log line stands in for a live line."""
    return NowAndThen(LOG_EVERY_S, at_once=False)


def progress_line(stats: Stats) -> str:
    """One line: pages, speed, what is left."""
    left_s = remaining_s(stats)
    parts = [
        stats.crawl if stats.state is CrawlState.RUNNING else f"{stats.crawl} ({stats.state})",
        f"{stats.done:,} pages",
        f"{stats.pages_per_s:,.1f}/s",
        f"{stats.waiting + stats.delayed:,} queued",
        f"{stats.leased} in hand",
        f"{stats.retries:,} failed",
        f"{stats.dead:,} dead",
        f"ETA {duration(left_s) if left_s is not None else '?'}",
    ]
    return " · ".join(parts)


def facts(title: str, rows: Sequence[Row]) -> Table:
    """A table of names and values. A value may have several lines."""
    table = Table(title=text(title), title_justify="left", title_style="bold", show_header=False)
    table.add_column(style="dim")
    table.add_column()
    for name, value in rows:
        values = [value] if isinstance(value, str) else value
        table.add_row(text(name), Text("\n").join(map(text, values)))
    return table


def summary_table(summary: Summary) -> Table:
    """How a run of a crawl ended."""
    stats = summary.stats
    rows: list[Row] = [
        ("state", str(stats.state)),
        ("pages", f"{stats.done:,} done, {stats.dead:,} dead, {stats.dropped:,} dropped"),
        ("retries", f"{stats.retries:,}"),
        ("links", f"{stats.duplicates:,} duplicates, {stats.filtered:,} not wanted"),
        ("items", _items(summary)),
        ("read", bytes_read(stats)),
        ("time", f"{duration(summary.seconds)} this run"),
    ]
    if stats.rules.previous:
        rows.insert(2, ("unchanged", f"{counted(stats.unchanged, 'page')} not sent again"))
    if summary.gone:
        gone = counted(summary.gone, "item")
        rows.append(("gone", f"{gone} of {stats.rules.previous} not found any more"))
    if stats.remaining:
        rows.insert(2, ("left", f"{stats.remaining:,} in the queue"))
    if summary.causes:
        rows.append(("causes", lines_of(summary.causes, stats.dead, "dead tasks")))
    if stats.rejected:
        did_not_pass = f"{counted(stats.rejected, 'item')} did not pass validation"
        reasons = lines_of(summary.rejections, stats.rejected, "rejected items")
        rows.append(("rejected", [did_not_pass, *reasons]))
    if stats.lost:
        rows.append(("lost", f"{stats.lost:,} leases of workers that died; all taken back"))
    return facts(stats.crawl, rows)


def _items(summary: Summary) -> str:
    if summary.stats.items and not summary.items:
        return f"{summary.stats.items:,} on their way to the store"
    return ", ".join(f"{n:,} {kind}" for kind, n in sorted(summary.items.items())) or "none"


def snapshot_view(seen: Snapshot, now: float, notes: Sequence[str] = ()) -> Group:
    """A crawl with its workers and hosts, and what else is to be noted, in a line each."""
    stats = seen.stats
    parts: list[RenderableType] = [status_table(stats, now)]
    if seen.late:
        parts.append(text(f"{stats.crawl} is {seen.late}", "bold red"))
    parts += _causes(seen)
    parts += map(text, _of_broker(stats))
    if stats.inbox or stats.refused:
        parts.append(text(f"inbox: {stats.inbox:,} to be read, {stats.refused:,} rejected"))
    parts += map(text, notes)
    if seen.workers:
        parts += [_title(counted(len(seen.workers), "worker")), workers_table(seen.workers)]
    if seen.busiest:
        parts += [_title("busiest hosts"), hosts_table(seen.busiest, now)]
    if seen.slowest:
        parts += [_title("slowest hosts"), hosts_table(seen.slowest[:FEW_HOSTS], now)]
    if seen.failing:
        share = f"failing hosts (with {failure_concentration(seen):.0%} of all failures)"
        parts += [_title(share), hosts_table(seen.failing[:FEW_HOSTS], now)]
    return Group(*parts)


def _of_broker(stats: Stats) -> Iterator[str]:
    if stats.outside:
        yield f"with the broker: {stats.outside:,} blocks of tasks"
    if stats.foreign:
        yield f"from the broker: {counted(stats.foreign, 'foreign block')}, not let in"
    if stats.broker_requests:
        cost = f"about ${stats.broker_cost:,.4f}"
        yield f"to the broker: {stats.broker_requests:,} requests, {cost}"
    if stats.missing:
        yield f"{stats.missing:,} tasks are missing in the broker: {REPAIR}"


def _causes(seen: Snapshot) -> list[RenderableType]:
    if not seen.causes:
        return []
    lines = lines_of(seen.causes, seen.stats.dead, "dead tasks")
    return [_title("why tasks are dead"), *map(text, lines)]


def _title(title: str) -> Group:
    return Group(text(""), text(title, "bold"))


def status_table(stats: Stats, now: float) -> Table:
    """The counters of a crawl."""
    return facts(stats.crawl, status_rows(stats, now))


def workers_table(workers: list[Pulse]) -> Table:
    """The workers that gave a sign of life lately."""
    return table(WORKER_COLUMNS, map(worker_row, workers))


def hosts_table(hosts: list[Host], now: float) -> Table:
    """How some hosts are being served."""
    return table(HOST_COLUMNS, [host_row(host, now) for host in hosts])


def crawls_table(crawls: list[Stats], now: float) -> Table:
    """Every crawl here, a line each, those that are over too."""
    made = table(CRAWL_COLUMNS, [crawl_row(stats, now) for stats in crawls])
    made.columns[0].no_wrap = True
    return made
