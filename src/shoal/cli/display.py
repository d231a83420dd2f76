"""Output for people: lines, tables, the progress line.

All output goes through `say`, `say_lines`, `text`, `table` or `print_json`. URLs come from pages:
they must not act as markup, nor reach the terminal as control sequences.
"""

from __future__ import annotations

import logging
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from shoal.cli.live_line import live_line
from shoal.coordinator.lateness import remaining_s
from shoal.core import plaintext
from shoal.core.causes import lines_of
from shoal.fleet.crawl import Watch
from shoal.fleet.looking import Glance
from shoal.fleet.summary import Summary
from shoal.frontier.values import CrawlState, Stats
from shoal.insight.explain_rows import Row
from shoal.insight.figures import counted, duration
from shoal.insight.rows import (
    CRAWL_COLUMNS,
    bytes_read,
    crawl_row,
    own_counts,
)
from shoal.insight.slowness import why_slow
from shoal.runtime.patience import NowAndThen

LOG_EVERY_S = 10.0
LOOK_EVERY_S = 0.25
TABLE_WIDTH = 120
FRAME_WIDTH = len("│  │  │")
NARROWEST = 20
log = logging.getLogger("shoal")


def console(*, stderr: bool = False) -> Console:
    """A terminal, or what replaces it. Brackets are not markup there."""
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def is_live(terminal: Console) -> bool:
    """Whether it is a terminal that can erase what it shows."""
    return terminal.is_terminal and not terminal.is_dumb_terminal


def out() -> Console:
    """The console for answers. A table that is too wide for a terminal is wrapped: that is ugly,
    but truncated names and numbers are useless."""
    wide = console()
    wide.soft_wrap = True
    wide.width = max(wide.width, TABLE_WIDTH)
    return wide


def say(line: str, *, err: bool = False) -> None:
    """Print one line. Whatever the text contains, it stays one line."""
    stream = sys.stderr if err else sys.stdout
    stream.write(plaintext.one_line(line) + "\n")
    stream.flush()


def say_lines(text: str, *, err: bool = False) -> None:
    """Print a text of several lines: help, a traceback."""
    (sys.stderr if err else sys.stdout).write(plaintext.lines(text) + "\n")


def print_json(value: Any) -> None:
    """Print an answer for scripts."""
    json = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    sys.stdout.write(plaintext.in_json(json) + "\n")


def print_json_line(value: Any) -> None:
    """Print one of many answers for scripts, at once."""
    sys.stdout.write(plaintext.in_json(msgspec.json.encode(value).decode()) + "\n")
    sys.stdout.flush()


def text(line: str, style: str = "") -> Text:
    """One line for a console."""
    return Text(plaintext.one_line(line), style=style)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table without lines around its cells. What does not fit is folded, never cut off."""
    made = Table(box=None)
    for column in columns:
        made.add_column(column, overflow="fold")
    for row in rows:
        made.add_row(*map(text, row))
    return made


def print_folded(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table as wide as the terminal, with long values folded instead of cut off."""
    terminal = console()
    (terminal if terminal.is_terminal else out()).print(table(columns, rows))


@contextmanager
def progress(*, quiet: bool) -> Iterator[Watch]:
    """Show how far a crawl is: a live line on a terminal, a log line now and then elsewhere."""
    if quiet:
        yield lambda look: None
    elif is_live(terminal := console(stderr=True)):
        with live_line(terminal) as draw:
            yield lambda look: draw(text(_progress(look), "bold"))
    else:
        yield _logging()


def _logging() -> Watch:
    timer = log_timer()

    def watch(look: Glance) -> None:
        if timer.is_due():
            log.info(_progress(look))

    return watch


def log_timer() -> NowAndThen:
    """A timer for the log lines that replace a live line."""
    return NowAndThen(LOG_EVERY_S, at_once=False)


def _progress(look: Glance) -> str:
    return progress_line(look.stats, why_slow(look))


def progress_line(stats: Stats, why: str = "") -> str:
    """The progress of a crawl in one line: pages, speed, tasks left, and why it is not faster."""
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
        why or _way_on(stats),
    ]
    return " · ".join(filter(None, parts))


def _way_on(stats: Stats) -> str:
    """What a crawl waits for that somebody has paused, or that has had too many errors."""
    if stats.state is not CrawlState.PAUSED:
        return ""
    return f"shoal resume {shlex.quote(stats.crawl)} goes on"


def facts(title: str, rows: Sequence[Row]) -> Table:
    """A table of names and values. Values may have several lines, and are folded to fit the
    terminal: if the terminal wrapped them itself, the frame would be broken."""
    table = Table(title=text(title), title_justify="left", title_style="bold", show_header=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold", max_width=_room_beside([name for name, _ in rows]))
    for name, value in rows:
        values = [value] if isinstance(value, str) else value
        table.add_row(text(name), Text("\n").join(map(text, values)))
    return table


def _room_beside(names: Sequence[str]) -> int | None:
    """How wide values may be on this terminal. None: any width, as it is not a terminal."""
    terminal = console()
    if not terminal.is_terminal:
        return None
    return max(terminal.width - max(map(len, names), default=0) - FRAME_WIDTH, NARROWEST)


def summary_table(summary: Summary) -> Table:
    """How a run of a crawl ended."""
    stats = summary.stats
    rows: list[Row] = [
        ("state", str(stats.state)),
        ("pages", f"{stats.done:,} done, {stats.dead:,} dead, {stats.dropped:,} dropped"),
        ("retries", f"{stats.retries:,}"),
        ("links", f"{counted(stats.duplicates, 'duplicate')}, {stats.filtered:,} not wanted"),
        ("items", _items(summary)),
        ("read", bytes_read(stats)),
        ("time", f"{duration(summary.seconds)} this run"),
    ]
    if stats.files:
        rows.insert(5, ("files", f"{stats.files:,} stored"))
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
    if stats.own_counts:
        rows.append(("counted", own_counts(stats)))
    if stats.lost:
        rows.append(
            ("lost", f"{counted(stats.lost, 'lease')} of workers that died; all taken back")
        )
    return facts(stats.crawl, rows)


def _items(summary: Summary) -> str:
    if summary.stats.items and not summary.items:
        return f"{summary.stats.items:,} on their way to the store"
    return ", ".join(f"{n:,} {kind}" for kind, n in sorted(summary.items.items())) or "none"


def stacked(parts: Iterable[RenderableType]) -> Group:
    """Shows several things, one below the other."""
    return Group(*parts)


def title(line: str) -> Group:
    """A title, with an empty line above it."""
    return Group(text(""), text(line, "bold"))


def crawls_table(crawls: list[Stats], now: float) -> Table:
    """A table of all crawls, one line each, including those that are over."""
    made = table(CRAWL_COLUMNS, [crawl_row(stats, now) for stats in crawls])
    for numbers in made.columns[1:]:  # A long name is folded, if need be, and they stay whole.
        numbers.no_wrap = True
    return made
