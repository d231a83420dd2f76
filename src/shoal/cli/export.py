"""shoal export: the items as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress, TextColumn

from shoal.cli import display
from shoal.cli.options import STORES, CrawlName, existing_stores, with_settings
from shoal.config import Settings
from shoal.crawl import open_stores
from shoal.eventloop import run
from shoal.export import Format, format_of
from shoal.export import export as write

Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="File to write; its suffix says the format. Else: stdout."),
]
FormatName = Annotated[
    Format | None, typer.Option("--format", help="The format, where the suffix does not say it.")
]
Kind = Annotated[str | None, typer.Option("--kind", help="Only items of this kind.")]


@with_settings(*STORES)
def export(
    crawl: CrawlName,
    options: dict[str, Any],
    output: Output = None,
    fmt: FormatName = None,
    kind: Kind = None,
) -> None:
    """Write a crawl's items as JSON lines or CSV.

    One object per item: its fields, then _kind, _key, _url, _scraped_at. The file appears when it
    is complete; until then an older one stays.

    Examples:

      shoal export shop -o products.jsonl

      shoal export shop --kind Product -o products.csv
    """
    chosen = format_of(output, fmt)
    count = run(_export(existing_stores(options), crawl, output, chosen, kind))
    if output is not None:
        typer.echo(f"{display.counted(count, 'item')} in {output}", err=True)


async def _export(
    settings: Settings, crawl: str, output: Path | None, fmt: Format, kind: str | None
) -> int:
    async with open_stores(settings) as (frontier, results):
        if not await results.count(crawl):
            await frontier.stats(crawl)  # A crawl may have no items, but it must be one.
        console = Console(stderr=True)
        columns = TextColumn("{task.completed:,} items")
        with Progress(columns, console=console, disable=not console.is_terminal) as bar:
            task = bar.add_task("export")
            advance = lambda done: bar.update(task, completed=done)  # noqa: E731
            return await write(results, crawl, output, fmt, kind, advance)
