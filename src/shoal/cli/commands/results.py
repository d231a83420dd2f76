"""shoal results: maintains stored results."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from shoal.cli import display
from shoal.cli.bars import bars
from shoal.cli.examples import examples
from shoal.cli.options import CrawlName, JsonFlag, existing_stores, show_help, with_settings
from shoal.core.policy import months_before
from shoal.insight.duplicates import Duplicates, mark_duplicates
from shoal.insight.figures import counted
from shoal.insight.json import pruned_json
from shoal.results import postgres_schema, results_at
from shoal.results.port import Pruned
from shoal.runtime.eventloop import run

FromVersion = Annotated[
    int,
    typer.Option("--from-version", min=0, help="Only what a database of this version lacks."),
]
OlderThan = Annotated[
    str, typer.Option("--older-than", metavar="AGE", help="An age in months or years: 6m, 1y.")
]
Detach = Annotated[
    bool, typer.Option("--detach", help="Detach the tables of old months instead of dropping them.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")]

app = typer.Typer(
    help="Stored results: tables, old data, duplicates.",
    callback=show_help,
    invoke_without_command=True,
)


@app.command()
@examples(
    "shoal results schema | psql postgresql://owner@db-host/shop",
)
def schema(from_version: FromVersion = 0) -> None:
    """Print the tables of the PostgreSQL store as SQL.

    Workers create the tables themselves if they are allowed to. If not, the owner of the database
    runs this once. Where the tables exist already, running it fails and changes nothing.
    """
    display.say_lines(postgres_schema(from_version, datetime.now(UTC)))


@app.command()
@with_settings("results")
@examples(
    "shoal results prune --older-than 6m --dry-run",
    "shoal results prune --older-than 1y --detach --results postgresql://db-host/shop",
)
def prune(
    older_than: OlderThan,
    options: dict[str, Any],
    detach: Detach = False,
    dry_run: DryRun = False,
    json: JsonFlag = False,
) -> None:
    """Remove old readings and page logs of all crawls. Items stay as they are.

    In PostgreSQL whole months are removed at once, as tables, which takes no time. A month is
    removed when all of it is old enough.
    """
    before = months_before(datetime.now(UTC), older_than)
    address = existing_stores(options).results
    pruned = run(_prune(address, before, detach=detach, dry_run=dry_run))
    if json:
        display.print_json(pruned_json(before, pruned))
        return
    removed = "would be removed" if dry_run else "detached" if detach else "removed"
    readings = counted(pruned.observations, "reading")
    pages = counted(pruned.pages, "page log entry", "page log entries")
    display.say(f"older than {before:%Y-%m-%d}: {readings} and {pages} {removed}")
    for table in pruned.tables:
        display.say(f"    {table}")


async def _prune(address: str, before: datetime, *, detach: bool, dry_run: bool) -> Pruned:
    async with results_at(address) as results:
        return await results.prune(before.timestamp(), detach=detach, dry_run=dry_run)


@app.command()
@with_settings("results")
@examples(
    "shoal results duplicates shop",
)
def duplicates(crawl: CrawlName, options: dict[str, Any], json: JsonFlag = False) -> None:
    """Find and mark pages that are nearly the same. Nothing is removed.

    For crawls that ran with --simhash. Afterwards, `shoal explain` names the page that a page is
    like.
    """
    found = run(_duplicates(existing_stores(options).results, crawl))
    if json:
        display.print_json(found)
        return
    pages, groups = counted(found.pages, "page"), counted(found.groups, "group")
    are = "is" if found.near == 1 else "are"
    display.say(f"of {pages}, {found.near:,} {are} nearly the same as another one, in {groups}")
    for example in found.examples:
        display.say(example.url)
        display.say(f"    like {example.like} ({counted(example.distance, 'bit')})")
    if found.near > len(found.examples):
        more = f"{found.near - len(found.examples):,} more"
        display.say(f"and {more}: shoal explain {shlex.quote(crawl)} URL")


async def _duplicates(address: str, crawl: str) -> Duplicates:
    async with results_at(address) as results:
        with bars("pages") as watch:
            return await mark_duplicates(results, crawl, watch)
