"""shoal export: the items as a file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.cli import display
from shoal.cli.bars import bars
from shoal.cli.examples import examples
from shoal.cli.options import STORES, CrawlName, existing_stores, with_settings
from shoal.export import Format, format_of
from shoal.export import export as write
from shoal.frontier import frontier_at
from shoal.insight.figures import counted
from shoal.insight.moments import parse_since
from shoal.results import results_at
from shoal.results.port import Wanted
from shoal.runtime.eventloop import run

Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help="File to write; the suffix is its format. [default: stdout]"
    ),
]
FormatName = Annotated[
    Format | None, typer.Option("--format", help="The format, if the suffix does not give it.")
]
Kind = Annotated[str | None, typer.Option("--kind", help="Only items of this kind.")]
Since = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Only items scraped since this time: 90s, 15m, 12h or 7d ago, or an ISO date (UTC).",
    ),
]
WhereChanged = Annotated[
    bool,
    typer.Option(
        "--where-changed",
        help="Only items that changed after they were first stored, or since the crawl that"
        " --previous named. With --since, only if they changed since that time.",
    ),
]

Gone = Annotated[
    bool,
    typer.Option("--gone", help="Also items that are gone: a crawl with --previous missed them."),
]


@with_settings(*STORES)
@examples(
    "shoal export shop -o products.jsonl",
    "shoal export shop --kind Product -o products.parquet",
    "shoal export shop --where-changed --since 1d -o changed.csv",
    "shoal export shop-tuesday --where-changed -o changed.jsonl",
    "shoal export shop-tuesday --gone -o all.jsonl",
)
def export(
    crawl: CrawlName,
    options: dict[str, Any],
    output: Output = None,
    fmt: FormatName = None,
    kind: Kind = None,
    since: Since = None,
    where_changed: WhereChanged = False,
    gone: Gone = False,
) -> None:
    """Write items as JSON lines, CSV or Parquet.

    One object per item: its fields, then _kind, _key, _url, _scraped_at. The file appears when it
    is complete; until then an older one stays. Parquet needs the extra `parquet`. With --gone there
    is also _gone_at, which is empty for items that are still there; --since then selects gone items
    by this time.
    """
    chosen = format_of(output, fmt)
    since_s = None if since is None else parse_since(since, time.time())
    wanted = Wanted(kind, since_s, where_changed, gone)
    count = run(_export(options, crawl, output, chosen, wanted))
    if output is not None:
        display.say(f"{counted(count, 'item')} in {output}", err=True)


async def _export(
    options: dict[str, Any], crawl: str, output: Path | None, fmt: Format, wanted: Wanted
) -> int:
    async with results_at(existing_stores({"results": options["results"]}).results) as results:
        counts = await results.count(crawl)
        if not counts and await results.note_of(crawl) is None:
            # A crawl may have no items, but it must be one.
            stores = existing_stores(options)
            async with frontier_at(stores.frontier, stores.state) as frontier:
                await frontier.stats(crawl)
        with bars("items", _total(counts, wanted)) as watch:
            return await write(results, crawl, output, fmt, wanted, watch)


def _total(counts: dict[str, int], wanted: Wanted) -> int | None:
    """How many items there will be, where that can be known beforehand."""
    if wanted.since is not None or wanted.changed or wanted.gone:
        return None
    return sum(counts.values()) if wanted.kind is None else counts.get(wanted.kind, 0)
