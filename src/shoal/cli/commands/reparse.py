"""shoal reparse: reads archived pages again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import typer
from rich.progress import Progress as Bar
from rich.progress import TextColumn

from shoal.archive import archive_at
from shoal.cli import display
from shoal.cli.arguments import ArgumentOptions, given
from shoal.cli.examples import examples
from shoal.cli.options import (
    CrawlName,
    JsonFlag,
    existing_stores,
    lacks_file,
    settings_from,
    with_settings,
)
from shoal.cli.spider_of import SpiderTarget, targets_of
from shoal.config import Settings
from shoal.core.addresses import masked
from shoal.errors import ConfigError, UnknownCrawl
from shoal.fleet import target
from shoal.frontier import frontier_at
from shoal.results import results_at
from shoal.results.port import Keep, Results, RunNote
from shoal.runtime import logs
from shoal.runtime.eventloop import run
from shoal.spider.arguments import arguments_of
from shoal.spider.own_settings import settings_of
from shoal.spider.spider import Spider
from shoal.worker.reparse import Progress, Reparsed
from shoal.worker.reparse import reparse as read_again


@with_settings("archive", "results", "frontier")
@examples(
    "shoal reparse shop",
    "shoal reparse shop --spider shop_v2.py:Shop --archive s3://bucket/pages",
)
def reparse(
    crawl: CrawlName,
    options: dict[str, Any],
    spider: SpiderTarget = None,
    arg: ArgumentOptions = None,
    json: JsonFlag = False,
) -> None:
    """Run the spider again over archived pages.

    The site is not touched. This is for a crawl that ran with --archive, after its spider was
    corrected. The items are updated; an item that was read from a newer page stays as it is. Links
    are not followed. By default, the archive is that of the crawl's last run; so is the spider, if
    the results are in a file on this machine. So are the spider's arguments (-a), if the frontier
    has kept them.

    Exit codes: 0 all pages were read; 3 a handler raised for some; 2 usage error.
    """
    address = existing_stores({"results": options["results"]}).results
    done = run(_reparse(address, crawl, spider, options, given(arg)))
    if json:
        display.print_json(done)
    else:
        _show(crawl, done)
    raise typer.Exit(3 if done.failed else 0)


async def _reparse(
    address: str,
    crawl: str,
    spider_target: str | None,
    options: dict[str, Any],
    args: dict[str, Any],
) -> Reparsed:
    async with results_at(address) as results:
        note = await results.note_of(crawl)
        spider = target.load(targets_of(crawl, spider_target, note, address))
        settings = settings_from(options, settings_of(spider))
        logs.configure(json_lines=settings.json_logs)
        args = args or await _kept(crawl, spider, settings)
        made = target.create(spider, settings.plugins, args)
        return await _read_again(crawl, made, results, settings, note)


async def _kept(crawl: str, spider: type[Spider], settings: Settings) -> dict[str, Any]:
    """The arguments that the frontier has kept for the crawl's spider, if it takes any."""
    if not arguments_of(spider) or lacks_file(settings.frontier):
        return {}
    async with frontier_at(settings.frontier, settings.state) as frontier:
        with suppress(UnknownCrawl):
            return (await frontier.stats(crawl)).rules.args
    return {}


async def _read_again(
    crawl: str, spider: Spider, results: Results, settings: Settings, note: RunNote | None
) -> Reparsed:
    address = settings.archive or (note and note.archive)
    if not address:
        raise ConfigError(f"the last run of '{crawl}' had no archive: name one with --archive")
    keep = Keep(history=settings.rules.history)
    async with archive_at(address, settings.archive_format) as archive:
        with _progress() as progress:
            done = await read_again(
                crawl,
                spider,
                archive,
                results,
                keep,
                canonical=settings.rules.canonical,
                max_links=settings.rules.max_links_per_page,
                progress=progress,
            )
    if not done.pages and not done.failed:
        raise ConfigError(f"{masked(address)} has no pages of a crawl named '{crawl}'")
    return done


@contextmanager
def _progress() -> Iterator[Progress]:
    """Show the progress as a live line on a terminal."""
    console = display.console(stderr=True)
    columns = TextColumn("{task.completed:,} pages · {task.fields[items]:,} items")
    with Bar(columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("reparse", items=0)
        yield lambda done: bar.update(task, completed=done.pages, items=done.items)


def _show(crawl: str, done: Reparsed) -> None:
    rows = [
        ("pages", f"{done.pages:,} read again"),
        ("items", f"{done.items:,} saved"),
        ("rejected", f"{done.rejected:,} items did not pass validation"),
        ("failed", f"{done.failed:,} pages"),
    ]
    display.out().print(display.facts(crawl, rows))
    for reason in done.reasons:
        display.say(f"    {reason}")
    if done.failed > len(done.reasons):
        display.say(f"    and {done.failed - len(done.reasons):,} more")
