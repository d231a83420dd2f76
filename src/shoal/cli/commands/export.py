"""shoal export: writes the items of a crawl to a file."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.archive import open_files
from shoal.cli import display
from shoal.cli.bars import bars
from shoal.cli.examples import examples
from shoal.cli.known_crawl import must_be_known
from shoal.cli.options import STORES, CrawlName, existing_stores, settings_from, with_settings
from shoal.errors import ConfigError
from shoal.export import FilesFolder, Format, format_of
from shoal.export import export as write
from shoal.fleet.stores import file_store_of
from shoal.insight.figures import counted
from shoal.insight.moments import parse_since
from shoal.results import results_at
from shoal.results.port import RunNote, Wanted
from shoal.runtime.eventloop import run

Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help="File to write; its suffix is the format. [default: stdout]"
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

Files = Annotated[
    Path | None,
    typer.Option(
        "--files",
        metavar="DIR",
        help="Also write the files of these items to this folder.",
    ),
]
Gone = Annotated[
    bool,
    typer.Option("--gone", help="Also items that a crawl with --previous did not find any more."),
]


@with_settings(*STORES, "file_store")
@examples(
    "shoal export shop -o products.jsonl",
    "shoal export shop --kind Product -o products.parquet",
    "shoal export shop --where-changed --since 1d -o changed.csv",
    "shoal export shop-tuesday --where-changed -o changed.jsonl",
    "shoal export shop-tuesday --gone -o all.jsonl",
    "shoal export shop -o products.jsonl --files pictures",
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
    files: Files = None,
) -> None:
    """Write items as JSON lines, CSV or Parquet.

    One object per item: its fields, then _kind, _key, _url, _scraped_at. The file appears when it
    is complete; until then, an older one stays. Parquet needs the extra `parquet`. With --gone,
    there is also _gone_at, which is empty for items that are still there; --since then selects gone
    items by this time.

    For an item with files, _files lists what became of each, and _complete says whether all are
    stored. --files names the files by their content; _files has these names as `path`. Exit code 3:
    some files could not be written.
    """
    chosen = format_of(output, fmt)
    since_s = None if since is None else parse_since(since, time.time())
    wanted = Wanted(kind, since_s, where_changed, gone)
    count, folder = run(_export(options, crawl, output, chosen, wanted, files))
    if output is not None:
        display.say(f"{counted(count, 'item')} in {output}", err=True)
    if folder is not None:
        _show_files(folder, files)


def _show_files(folder: FilesFolder, path: Path | None) -> None:
    display.say(f"{counted(len(folder.paths), 'file')} in {path}", err=True)
    if folder.failed:
        display.say(f"{counted(folder.failed, 'file')} could not be written:", err=True)
        for reason in folder.reasons:
            display.say(f"    {reason}", err=True)
        raise typer.Exit(3)


async def _export(
    options: dict[str, Any],
    crawl: str,
    output: Path | None,
    fmt: Format,
    wanted: Wanted,
    files: Path | None,
) -> tuple[int, FilesFolder | None]:
    async with results_at(existing_stores({"results": options["results"]}).results) as results:
        counts, note = await results.count(crawl), await results.note_of(crawl)
        # A crawl may have no items, but it must be one.
        await must_be_known(crawl, counts, note, options)
        async with _folder_for(files, options, note) as folder:
            with bars("items", _total(counts, wanted)) as watch:
                count = await write(results, crawl, output, fmt, wanted, watch, folder)
            return count, folder


@asynccontextmanager
async def _folder_for(
    files: Path | None, options: dict[str, Any], note: RunNote | None
) -> AsyncIterator[FilesFolder | None]:
    """The folder to write files to. They are read from the file store of the crawl's last run."""
    if files is None:
        yield None
        return
    settings = settings_from(options)
    noted = note.file_store if note is not None else ""
    address = settings.file_store or noted or file_store_of(settings)
    if not address:
        raise ConfigError("--files: name the store of the files with --file-store")
    store = open_files(address)
    try:
        yield FilesFolder(store, files)
    finally:
        await store.close()


def _total(counts: dict[str, int], wanted: Wanted) -> int | None:
    """How many items there will be, if that is known in advance."""
    if wanted.since is not None or wanted.changed or wanted.gone:
        return None
    return sum(counts.values()) if wanted.kind is None else counts.get(wanted.kind, 0)
