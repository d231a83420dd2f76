"""The view of one crawl in `shoal status`, with problems first."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table

from shoal.cli.display import facts, progress_line, stacked, table, text, title
from shoal.core.causes import lines_of
from shoal.frontier.values import Host, Pulse, Stats
from shoal.insight.figures import counted
from shoal.insight.rows import (
    HOST_COLUMNS,
    WORKER_COLUMNS,
    host_row,
    status_rows,
    worker_row,
)
from shoal.insight.status import FEW_HOSTS, Snapshot, failure_concentration
from shoal.insight.status_lines import slow_lines
from shoal.insight.traps import trap_lines

FEW_ROWS, MANY_ROWS = 3, 10
AROUND_TABLES = 8
"""Lines of the terminal without rows of hosts or workers: titles, and lines between tables."""


def snapshot_view(seen: Snapshot, now: float, notes: Sequence[str] = ()) -> Group:
    """A crawl with its workers and hosts, and with notes, one line each."""
    parts = [
        *_problems(seen),
        status_table(seen.stats, now),
        *map(text, notes),
        *_workers(seen.workers),
        *_hosts(seen, now, len(seen.busiest) + 2 * FEW_HOSTS),
    ]
    return stacked(parts)


def watched_view(seen: Snapshot, now: float, notes: Sequence[str], height: int) -> Group:
    """The same for a terminal of `height` lines: what changes is at the top, and what may be cut
    off is at the bottom."""
    above = [
        text(progress_line(seen.stats), "bold"),
        *_problems(seen),
        *map(text, notes),
    ]
    rows = (height - AROUND_TABLES - len(above)) // 2
    rows = min(max(rows, FEW_ROWS), MANY_ROWS)
    below = [*_hosts(seen, now, rows), *_workers(seen.workers[:rows]), text("")]
    return stacked([*above, *below, status_table(seen.stats, now)])


def _problems(seen: Snapshot) -> list[RenderableType]:
    stats = seen.stats
    lines: list[RenderableType] = []
    if seen.late:
        lines.append(text(f"{stats.crawl} is {seen.late}", "bold red"))
    lines += map(text, slow_lines(seen))
    if seen.causes:
        causes = lines_of(seen.causes, stats.dead, "dead tasks")
        lines += [text("why tasks are dead", "bold"), *map(text, causes)]
    if seen.traps:
        traps = trap_lines(seen.traps, stats.rules)
        lines += [text("links that were not followed", "bold"), *map(text, traps)]
    return lines


def _workers(workers: list[Pulse]) -> list[RenderableType]:
    """The workers that have recently given a sign of life."""
    if not workers:
        return []
    shown = table(WORKER_COLUMNS, map(worker_row, workers))
    return [title(counted(len(workers), "worker")), shown]


def _hosts(seen: Snapshot, now: float, rows: int) -> list[RenderableType]:
    """The busiest hosts, then the slowest and those that fail most, each of them once."""
    named = {host.host: host for host in _hosts_to_show(seen)}
    if not named:
        return []
    shown_as = "hosts"
    if failing := seen.failing[:FEW_HOSTS]:
        share = f"{failure_concentration(seen):.0%} of all failures"
        shown_as = f"hosts ({len(failing)} with {share})"
    shown = [host_row(host, now) for host in list(named.values())[:rows]]
    return [title(shown_as), table(HOST_COLUMNS, shown)]


def _hosts_to_show(seen: Snapshot) -> list[Host]:
    return [*seen.busiest, *seen.slowest[:FEW_HOSTS], *seen.failing[:FEW_HOSTS]]


def status_table(stats: Stats, now: float) -> Table:
    """The counters of a crawl."""
    return facts(stats.crawl, status_rows(stats, now))
