"""shoal dead: tasks that failed for good, and why."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from typing import Annotated, Any

import typer

from shoal.cli import display
from shoal.cli.examples import examples
from shoal.cli.options import CrawlName, JsonFlag, existing_stores, show_help, with_settings
from shoal.errors import ConfigError
from shoal.frontier import frontier_at
from shoal.frontier.admission import Admission
from shoal.frontier.port import Queries
from shoal.frontier.values import Record
from shoal.insight.json import dead_task_json, dead_tasks_at_json
from shoal.runtime.eventloop import run

PAGE = 500

app = typer.Typer(
    help="Tasks that failed for good: see why, then retry or drop them.",
    callback=show_help,
    invoke_without_command=True,
)

Url = Annotated[str, typer.Argument(metavar="URL", help="The task's address, in any spelling.")]
Urls = Annotated[
    list[str] | None,
    typer.Argument(metavar="URL", help="Only tasks at these addresses. [default: all]"),
]
Limit = Annotated[int, typer.Option(min=1, help="Show at most this many.")]


@app.command("list")
@with_settings("frontier")
@examples(
    "shoal dead list shop --json",
)
def list_(
    crawl: CrawlName, options: dict[str, Any], limit: Limit = 100, json: JsonFlag = False
) -> None:
    """List dead tasks and why they died."""
    run(_list(_address(options), crawl, limit, json=json))


@app.command()
@with_settings("frontier")
@examples("shoal dead show shop https://shop.example/product/17")
def show(crawl: CrawlName, url: Url, options: dict[str, Any], json: JsonFlag = False) -> None:
    """Show the dead tasks at one address.

    The traceback is shown too if a handler raised. There may be several tasks: a GET and a POST, or
    copies (dont_filter).
    """
    run(_show(_address(options), crawl, url, json=json))


@app.command()
@with_settings("frontier")
@examples("shoal dead retry shop", "shoal dead retry shop https://shop.example/product/17")
def retry(crawl: CrawlName, options: dict[str, Any], urls: Urls = None) -> None:
    """Queue dead tasks again, as if they had never been tried. `shoal crawl` then works on them."""
    count = run(_retry_or_purge(_address(options), crawl, urls, retry=True))
    display.say(f"queued again: {display.counted(count, 'task')}")


@app.command()
@with_settings("frontier")
@examples("shoal dead purge shop", "shoal dead purge shop https://shop.example/product/17")
def purge(crawl: CrawlName, options: dict[str, Any], urls: Urls = None) -> None:
    """Drop dead tasks for good. `shoal explain` still says why they died."""
    count = run(_retry_or_purge(_address(options), crawl, urls, retry=False))
    display.say(f"dropped: {display.counted(count, 'task')}")


def _address(options: dict[str, Any]) -> str:
    return existing_stores(options).frontier


async def _list(address: str, crawl: str, limit: int, *, json: bool) -> None:
    async with frontier_at(address) as frontier:
        total = (await frontier.stats(crawl)).dead
        records = [record async for record in _dead(frontier, crawl, limit)]
    if json:
        display.print_json([dead_task_json(record) for record in records])
        return
    for record in records:
        display.say(record.task.url)
        display.say(f"    {_story(record)}")
    if not records:
        display.say("no dead tasks")
    if total > len(records):
        display.say(f"{len(records)} of {total}; --limit shows more")


def _story(record: Record) -> str:
    return f"after {display.counted(record.task.retry_count, 'try', 'tries')}: {record.reason}"


async def _dead(frontier: Queries, crawl: str, limit: int) -> AsyncIterator[Record]:
    after = None
    while limit > 0:
        page = await frontier.dead(crawl, min(limit, PAGE), after)
        for record in page:
            yield record
        if len(page) < PAGE:
            return
        limit -= len(page)
        after = page[-1].fingerprint


async def _show(address: str, crawl: str, url: str, *, json: bool) -> None:
    async with frontier_at(address) as frontier:
        found = [record async for record in _dead_at(frontier, crawl, [url])]
    if not found:
        raise ConfigError(f"not dead in crawl '{crawl}': {url} (see: shoal explain {crawl} URL)")
    if json:
        display.print_json(dead_tasks_at_json(found))
        return
    for record in found:
        _show_one(record)


def _show_one(record: Record) -> None:
    rows: list[display.Row] = [
        *display.request_rows(record.task),
        ("reason", record.reason),
        ("tries", str(record.task.retry_count)),
        ("handler", record.task.job_type),
        ("workers lost", str(record.losses)),
    ]
    display.out().print(display.facts(record.task.url, rows))
    if record.detail:
        display.say_lines(record.detail)


async def _dead_at(frontier: Queries, crawl: str, urls: list[str]) -> AsyncIterator[Record]:
    """Every dead task with one of these addresses, whatever its method, its body or its copy."""
    admission = Admission((await frontier.stats(crawl)).rules)
    same = [admission.same_address(url) for url in urls]
    async for record in _dead(frontier, crawl, sys.maxsize):
        if any(is_same(record.task.url) for is_same in same):
            yield record


async def _retry_or_purge(address: str, crawl: str, urls: list[str] | None, *, retry: bool) -> int:
    async with frontier_at(address) as frontier:
        call = frontier.retry_dead if retry else frontier.purge_dead
        if not urls:
            return await call(crawl, None)
        chosen = [record.fingerprint async for record in _dead_at(frontier, crawl, urls)]
        parts = [chosen[first : first + PAGE] for first in range(0, len(chosen), PAGE)]
        return sum([await call(crawl, part) for part in parts])
