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
from shoal.core.policy import BLOCKED_STATUSES
from shoal.core.task import Task
from shoal.fleet.crawl import Summary, Watch
from shoal.frontier.values import CrawlState, Host, Pulse, Stats
from shoal.insight.status import (
    FEW_HOSTS,
    Snapshot,
    block_rate,
    duplicate_rate,
    elapsed_s,
    failure_concentration,
)
from shoal.runtime.patience import NowAndThen

LOG_EVERY_S = 10.0
TABLE_WIDTH = 120
VALUE_CHARACTERS = 40

Row = tuple[str, str | list[str]]

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


def request_rows(task: Task) -> list[Row]:
    """For `facts`: what is asked for at a task's address, unless it is the page as such."""
    if task.method == "GET" and not task.body and not task.dont_filter:
        return []
    parts = [task.method]
    if task.body:
        what = "in base64 " if task.body_is_base64 else ""
        parts.append(f"body {what}{shortened(task.body)}")
    if task.dont_filter:
        parts.append("a copy of its own (dont_filter)")
    return [("request", ", ".join(parts))]


def shortened(value: str) -> str:
    """Enough of a value to tell it from others."""
    return value if len(value) <= VALUE_CHARACTERS else f"{value[: VALUE_CHARACTERS - 1]}…"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """A number of things: 1 task, 2 tasks."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def duration(seconds: float) -> str:
    """Seconds for people: 4.2s, 3m 20s, 5h 12m, 2d 3h."""
    if seconds < 60:
        return f"{seconds:.1f}s" if seconds < 10 else f"{seconds:.0f}s"
    minutes, rest_s = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}m {rest_s:02}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes:02}m" if hours < 48 else f"{hours // 24}d {hours % 24}h"


def size(count: float) -> str:
    """Bytes for people."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


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
        ("read", _read(stats)),
        ("time", f"{duration(summary.seconds)} this run"),
    ]
    if stats.rules.previous:
        rows.insert(2, ("unchanged", f"{counted(stats.unchanged, 'page')} not sent again"))
    if summary.gone:
        gone = counted(summary.gone, "item")
        rows.append(("gone", f"{gone} of {stats.rules.previous} not found any more"))
    if stats.remaining:
        rows.insert(2, ("left", f"{stats.remaining:,} in the queue"))
    if stats.rejected:
        rows.append(("rejected", f"{stats.rejected:,} items did not pass validation"))
    if stats.lost:
        rows.append(("lost", f"{stats.lost:,} leases of workers that died; all taken back"))
    return facts(stats.crawl, rows)


def _read(stats: Stats) -> str:
    """Pages come packed, and with headers; what Scrapy fetches is not counted on the wire."""
    on_wire = f", {size(stats.wire_bytes)} on the wire" if stats.wire_bytes else ""
    return f"{size(stats.body_bytes)}{on_wire}"


def _items(summary: Summary) -> str:
    if summary.stats.items and not summary.items:
        return f"{summary.stats.items:,} on their way to the store"
    return ", ".join(f"{n:,} {kind}" for kind, n in sorted(summary.items.items())) or "none"


def status_table(stats: Stats, now: float) -> Table:
    """The counters of a crawl."""
    left_s = remaining_s(stats)
    rows = [
        ("state", str(stats.state)),
        (
            "added",
            f"{stats.added:,} ({stats.filtered:,} filtered; {duplicate_rate(stats):.1%} of links"
            " were duplicates)",
        ),
        ("queued", f"{stats.waiting:,} waiting, {stats.delayed:,} delayed"),
        ("in hand", f"{stats.leased:,}"),
        ("ended", f"{stats.done:,} done, {stats.dead:,} dead, {stats.dropped:,} dropped"),
        ("retries", f"{stats.retries:,}"),
        ("requests", _requests(stats)),
        ("lost leases", f"{stats.lost:,}"),
        ("items", f"{stats.items:,} saved, {stats.rejected:,} rejected"),
        ("read", _read(stats)),
        ("speed", f"{stats.pages_per_s:,.1f} pages/s"),
        ("elapsed", duration(elapsed_s(stats, now))),
        ("ETA", duration(left_s) if left_s is not None else "?"),
        ("rate", f"{stats.rules.rate} per host, {stats.rules.concurrency_per_host} at once"),
    ]
    if stats.bloom:
        share = f"{stats.rules.seen_error:.2%} of new URLs may be taken for known ones"
        rows.append(("known URLs", f"in a Bloom filter: {share}"))
    return facts(stats.crawl, rows)


def _requests(stats: Stats) -> str:
    statuses = ", ".join(map(str, sorted(BLOCKED_STATUSES)))
    sent = f"{stats.sent:,} sent, {block_rate(stats):.1%} blocked ({statuses})"
    if not stats.rules.previous:
        return sent
    return f"{sent}, {stats.unchanged:,} unchanged (304)"


def snapshot_view(seen: Snapshot, now: float, notes: Sequence[str] = ()) -> Group:
    """A crawl with its workers and hosts, and what else is to be noted, in a line each."""
    stats = seen.stats
    parts: list[RenderableType] = [status_table(stats, now)]
    if seen.late:
        parts.append(text(f"{stats.crawl} is {seen.late}", "bold red"))
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


def _title(title: str) -> Group:
    return Group(text(""), text(title, "bold"))


def workers_table(workers: list[Pulse]) -> Table:
    """The workers that gave a sign of life lately."""
    columns = ("worker", "version", "in flight", "pages", "pages/s", "memory")
    return table(columns, map(_worker_row, workers))


def _worker_row(pulse: Pulse) -> tuple[str, ...]:
    return (
        pulse.worker,
        pulse.version,
        f"{pulse.in_flight:,}",
        f"{pulse.pages:,}",
        f"{pulse.pages_per_s:,.1f}",
        size(pulse.rss_bytes),
    )


def hosts_table(hosts: list[Host], now: float) -> Table:
    """How some hosts are being served."""
    columns = ("host", "waiting", "in hand", "done", "failed", "latency", "next", "delay", "")
    return table(columns, [_host_row(host, now) for host in hosts])


def _host_row(host: Host, now: float) -> tuple[str, ...]:
    wait_s = max(host.next_at - now, 0.0)
    delay_s = max(host.penalty_s, host.crawl_delay_s)
    return (
        host.host,
        *(f"{n:,}" for n in (host.waiting, host.leased, host.done, host.failed)),
        f"{host.latency_s * 1000:,.0f} ms" if host.latency_s else "",
        f"in {duration(wait_s)}" if wait_s else "now",
        duration(delay_s) if delay_s else "",
        "only probed: it keeps failing" if host.is_broken else "",
    )


def crawls_table(crawls: list[Stats], now: float) -> Table:
    """Every crawl here, a line each, those that are over too."""
    columns = ("crawl", "state", "total", "done", "dead", "left", "items", "pages/s", "time", "ETA")
    made = table(columns, [_crawl_row(stats, now) for stats in crawls])
    made.columns[0].no_wrap = True
    return made


def _crawl_row(stats: Stats, now: float) -> tuple[str, ...]:
    numbers = (stats.added, stats.done, stats.dead, stats.remaining, stats.items)
    left_s = remaining_s(stats)
    return (
        stats.crawl,
        str(stats.state),
        *(f"{n:,}" for n in numbers),
        f"{stats.pages_per_s:,.1f}",
        duration(elapsed_s(stats, now)) if stats.started_at else "",
        "" if stats.state.over else duration(left_s) if left_s is not None else "?",
    )
