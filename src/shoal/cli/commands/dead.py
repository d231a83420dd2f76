"""shoal dead: tasks that failed for good, and why."""

from __future__ import annotations

import shlex
import sys
from collections.abc import AsyncIterator
from typing import Annotated, Any

import typer
from msgspec.structs import replace

from shoal.cli import display
from shoal.cli.examples import examples
from shoal.cli.options import CrawlName, JsonFlag, existing_stores, show_help, with_settings
from shoal.config import Settings
from shoal.core.failures import FailureKind
from shoal.core.urls import parse
from shoal.errors import ConfigError
from shoal.frontier import frontier_at
from shoal.frontier.admission import Admission
from shoal.frontier.events import PURGED, RETRIED, note_event
from shoal.frontier.port import Queries
from shoal.frontier.values import ALL_DEAD, DeadFilter, Record
from shoal.insight.explain_rows import Row, request_rows
from shoal.insight.figures import counted
from shoal.insight.json import dead_task_json, dead_tasks_at_json
from shoal.insight.moments import shown_moment
from shoal.insight.sessions import session_of
from shoal.runtime.eventloop import run

PAGE = 500

app = typer.Typer(
    help="Failed tasks: see why, retry or drop them.",
    callback=show_help,
    invoke_without_command=True,
)

Url = Annotated[str, typer.Argument(metavar="URL", help="The task's address, in any spelling.")]
Urls = Annotated[
    list[str] | None,
    typer.Argument(metavar="URL", help="Only tasks at these addresses. [default: all]"),
]
Limit = Annotated[int, typer.Option(min=1, help="Show at most this many.")]
Kind = Annotated[
    FailureKind | None, typer.Option(help="Only tasks that died of this kind of failure.")
]
Host = Annotated[
    str | None, typer.Option(metavar="HOST", help="Only tasks of this host: shop.example.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print how many; change nothing.")]


@app.command("list")
@with_settings("frontier")
@examples(
    "shoal dead list shop --kind timeout",
    "shoal dead list shop --host shop.example --json",
)
def list_(
    crawl: CrawlName,
    options: dict[str, Any],
    kind: Kind = None,
    host: Host = None,
    limit: Limit = 100,
    json: JsonFlag = False,
) -> None:
    """List dead tasks and why they died. The newest come first."""
    run(_list(existing_stores(options), crawl, _filter(kind, host), limit, json=json))


@app.command()
@with_settings("frontier")
@examples("shoal dead show shop https://shop.example/product/17")
def show(crawl: CrawlName, url: Url, options: dict[str, Any], json: JsonFlag = False) -> None:
    """Show the dead tasks at one address.

    The traceback is shown too if a handler raised. There may be several tasks: a GET and a POST, or
    copies (dont_filter).
    """
    run(_show(existing_stores(options), crawl, url, json=json))


@app.command()
@with_settings("frontier")
@examples(
    "shoal dead retry shop",
    "shoal dead retry shop https://shop.example/product/17",
    "shoal dead retry shop --kind status_5xx --dry-run",
)
def retry(
    crawl: CrawlName,
    options: dict[str, Any],
    urls: Urls = None,
    kind: Kind = None,
    host: Host = None,
    dry_run: DryRun = False,
    json: JsonFlag = False,
) -> None:
    """Queue dead tasks again, with a fresh start. `shoal crawl` then works on them."""
    move = _retry_or_purge(
        existing_stores(options), crawl, urls, _filter(kind, host), retry=True, dry_run=dry_run
    )
    done = "would be queued again" if dry_run else "queued again"
    _say_moved(crawl, run(move), done, dry_run=dry_run, json=json)


@app.command()
@with_settings("frontier")
@examples(
    "shoal dead purge shop",
    "shoal dead purge shop https://shop.example/product/17",
    "shoal dead purge shop --host old.example --dry-run",
)
def purge(
    crawl: CrawlName,
    options: dict[str, Any],
    urls: Urls = None,
    kind: Kind = None,
    host: Host = None,
    dry_run: DryRun = False,
    json: JsonFlag = False,
) -> None:
    """Drop dead tasks for good. `shoal explain` still says why they died."""
    move = _retry_or_purge(
        existing_stores(options), crawl, urls, _filter(kind, host), retry=False, dry_run=dry_run
    )
    done = "would be dropped" if dry_run else "dropped"
    _say_moved(crawl, run(move), done, dry_run=dry_run, json=json)


def _filter(kind: FailureKind | None, host: str | None) -> DeadFilter:
    """The filter for these options. A host may be spelled as in a browser. Raises BadUrl."""
    return DeadFilter(kind=kind, host=parse(f"http://{host}/").host if host else None)


def _say_moved(crawl: str, count: int, done: str, *, dry_run: bool, json: bool) -> None:
    if json:
        display.print_json({"crawl": crawl, "tasks": count, "dry_run": dry_run})
    else:
        display.say(f"{done}: {counted(count, 'task')}")


async def _list(stores: Settings, crawl: str, which: DeadFilter, limit: int, *, json: bool) -> None:
    async with frontier_at(stores.frontier, stores.state) as frontier:
        records = [record async for record in _dead(frontier, crawl, which, limit)]
        total = len(records)
        if total == limit:  # There may be more.
            total = await frontier.retry_dead(crawl, which, dry_run=True)
    if json:
        display.print_json([dead_task_json(record) for record in records])
        return
    for record in records:
        display.say(record.task.url)
        display.say(f"    {_story(record)}")
    if not records:
        is_all = which == ALL_DEAD
        display.say("no dead tasks" if is_all else "no such dead tasks")
    if total > len(records):
        display.say(f"{len(records)} of {total}; --limit shows more")


def _story(record: Record) -> str:
    tries = counted(record.task.retry_count, "try", "tries")
    session = session_of(record.task)
    with_session = f" with session {session}" if session else ""
    died = shown_moment(record.place.died_at)
    return f"{died}  {record.kind}, after {tries}{with_session}: {record.reason}"


async def _dead(
    frontier: Queries, crawl: str, which: DeadFilter, limit: int = sys.maxsize
) -> AsyncIterator[Record]:
    after = None
    while limit > 0:
        page = await frontier.dead(crawl, min(limit, PAGE), after, which)
        for record in page:
            yield record
        if len(page) < PAGE:
            return
        limit -= len(page)
        after = page[-1].place


async def _show(stores: Settings, crawl: str, url: str, *, json: bool) -> None:
    async with frontier_at(stores.frontier, stores.state) as frontier:
        found = [record async for record in _dead_at(frontier, crawl, [url], ALL_DEAD)]
    if not found:
        see = f"shoal explain {shlex.quote(crawl)} URL"
        raise ConfigError(f"not dead in crawl '{crawl}': {url} (see: {see})")
    if json:
        display.print_json(dead_tasks_at_json(found))
        return
    for record in found:
        _show_one(record)


def _show_one(record: Record) -> None:
    rows: list[Row] = [
        *request_rows(record.task),
        ("died", shown_moment(record.place.died_at)),
        ("kind", str(record.kind)),
        ("reason", record.reason),
        ("tries", str(record.task.retry_count)),
        ("handler", record.task.job_type),
        ("workers lost", str(record.losses)),
    ]
    display.out().print(display.facts(record.task.url, rows))
    if record.detail:
        display.say_lines(record.detail)


async def _dead_at(
    frontier: Queries, crawl: str, urls: list[str], which: DeadFilter
) -> AsyncIterator[Record]:
    """All dead tasks with one of these addresses, whatever their method or body; copies too."""
    admission = Admission((await frontier.stats(crawl)).rules)
    same = [admission.same_address(url) for url in urls]
    async for record in _dead(frontier, crawl, which):
        if any(is_same(record.task.url) for is_same in same):
            yield record


async def _retry_or_purge(
    stores: Settings,
    crawl: str,
    urls: list[str] | None,
    which: DeadFilter,
    *,
    retry: bool,
    dry_run: bool,
) -> int:
    async with frontier_at(stores.frontier, stores.state) as frontier:
        if urls:
            found = _dead_at(frontier, crawl, urls, which)
            which = replace(which, fingerprints=[record.fingerprint async for record in found])
        call = frontier.retry_dead if retry else frontier.purge_dead
        count = await call(crawl, which, dry_run=dry_run)
        if count and not dry_run:
            event, text = RETRIED if retry else PURGED, counted(count, "dead task")
            await note_event(frontier.notes, crawl, event, text, by="command")
        return count
