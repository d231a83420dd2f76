"""shoal diff: what is new, changed and gone between two crawls."""

from __future__ import annotations

import time
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.cli import display
from shoal.cli.bars import bars
from shoal.cli.change_table import show_changes, summary
from shoal.cli.examples import examples
from shoal.cli.options import STORES, JsonFlag, existing_stores, with_settings
from shoal.config import Settings
from shoal.errors import ConfigError, ShoalError
from shoal.export import Format, format_of
from shoal.export.changes import FORMATS, require_format, wanted_changes, write_changes
from shoal.export.files import replacing, standard_output
from shoal.frontier import frontier_at
from shoal.insight.comparing import Compared, Sides, compared
from shoal.insight.figures import counted
from shoal.insight.moments import parse_since
from shoal.results import results_at
from shoal.results.changes import Change
from shoal.runtime.eventloop import run

SOME_DIFFER = 3
ALL_CHANGES = ",".join(Change)

Earlier = Annotated[
    str, typer.Argument(metavar="EARLIER", help="The earlier crawl; if alone, the later one.")
]
Later = Annotated[str | None, typer.Argument(metavar="LATER", help="The later crawl.")]
Since = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Compare a crawl with itself as it was then: 90s, 15m, 12h or 7d ago, or an ISO date"
        " (UTC).",
    ),
]
Kind = Annotated[str | None, typer.Option("--kind", help="Only items of this kind.")]
Only = Annotated[
    str, typer.Option(metavar="CHANGES", help="Only these changes: any of new,changed,gone.")
]
Ignore = Annotated[
    list[str] | None,
    typer.Option("--ignore", metavar="FIELD", help="A field that may differ. May be repeated."),
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="File to write: .jsonl or .csv.")
]
FormatName = Annotated[
    Format | None,
    typer.Option(
        "--format", metavar="|".join(FORMATS), help="The format, if the suffix does not give it."
    ),
]
Limit = Annotated[int, typer.Option(min=1, help="Show at most this many items in the table.")]
ExitCode = Annotated[
    bool, typer.Option("--exit-code", help=f"Exit code {SOME_DIFFER} if anything differs.")
]
EarlierResults = Annotated[
    str | None,
    typer.Option(
        "--earlier-results",
        metavar="URL",
        help="Where the earlier crawl's items are, if elsewhere.",
    ),
]


@with_settings(*STORES)
@examples(
    "shoal diff shop-monday shop-tuesday",
    "shoal diff shop-monday shop-tuesday --ignore seen_at --only changed,gone",
    "shoal diff shop-monday shop-tuesday -o changes.csv",
    "shoal diff shop --since 1d --exit-code",
)
def diff(
    earlier: Earlier,
    options: dict[str, Any],
    later: Later = None,
    since: Since = None,
    kind: Kind = None,
    only: Only = ALL_CHANGES,
    ignore: Ignore = None,
    output: Output = None,
    fmt: FormatName = None,
    json: JsonFlag = False,
    limit: Limit = 50,
    exit_code: ExitCode = False,
    earlier_results: EarlierResults = None,
) -> None:
    """Compare two crawls: what is new, changed, gone.

    Items with the same kind and key are compared, field by field. A crawl that is named alone is
    compared with the one that its --previous named; with --since, it is compared with itself at an
    earlier time, as far as its history goes. With --json, every change is a line of JSON.
    """
    at = None if since is None else parse_since(since, time.time())
    if at is not None and (later or earlier_results):
        raise ConfigError("--since compares a crawl with itself: name only one")
    sides = Sides(earlier, later, at, kind, tuple(ignore or ()))
    wanted = _changes(only)
    form = require_format(format_of(output, fmt)) if json or output or fmt else None
    stores = existing_stores({"results": options["results"]})
    before = existing_stores({"results": earlier_results}) if earlier_results else stores
    done = run(_diff(stores, before, sides, wanted, output, form, limit))
    display.say(summary(done), err=form is not None)
    if at is None:
        run(_warn_of_gaps(options, done.later))
    differ = any(done.comparison.counts[change] for change in wanted)
    raise typer.Exit(SOME_DIFFER if exit_code and differ else 0)


def _changes(names: str) -> frozenset[Change]:
    wanted = [name.strip() for name in names.split(",")]
    for name in wanted:
        if name not in list(Change):
            raise ConfigError(f"--only {name}: no such change ({', '.join(Change)})")
    return frozenset(map(Change, wanted))


async def _diff(
    stores: Settings,
    earlier_stores: Settings,
    sides: Sides,
    wanted: frozenset[Change],
    output: Path | None,
    fmt: Format | None,
    limit: int,
) -> Compared:
    async with AsyncExitStack() as stack:
        later = await stack.enter_async_context(results_at(stores.results))
        earlier = later
        if earlier_stores.results != stores.results:
            earlier = await stack.enter_async_context(results_at(earlier_stores.results))
        done = await compared(later, earlier, sides)
        watch = stack.enter_context(bars("items", done.items))
        changes = wanted_changes(done.comparison, wanted, watch)
        if fmt is None:
            await show_changes(changes, limit)
        else:
            with replacing(output) if output else standard_output() as out:
                await write_changes(changes, out, fmt)
        return done


async def _warn_of_gaps(options: dict[str, Any], crawl: str) -> None:
    """Print a warning if a crawl has not read everything, as far as its queue can be read."""
    with suppress(ShoalError):
        stores = existing_stores(options)
        async with frontier_at(stores.frontier, stores.state) as frontier:
            stats = await frontier.stats(crawl)
        if unread := stats.remaining + stats.dead:
            left = f"{counted(unread, 'task')} of {crawl} waiting or dead"
            display.say(f"{left}: their items count as gone", err=True)
