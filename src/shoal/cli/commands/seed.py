"""shoal seed: more URLs for a crawl."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import msgspec
import typer

from shoal.cli import display
from shoal.cli.bars import bars
from shoal.cli.examples import examples
from shoal.cli.options import CrawlName, JsonFlag, settings_from, with_settings
from shoal.config import Settings
from shoal.core.policy import parse_duration
from shoal.errors import ConfigError
from shoal.frontier import frontier_at
from shoal.frontier.values import Added
from shoal.runtime.eventloop import run
from shoal.seeds.seeding import BATCH
from shoal.seeds.sources import STDIN, Seeder, Sources

SHOWN = 20
"""So many bad seeds are told one by one; the others are counted."""

Urls = Annotated[list[str] | None, typer.Argument(metavar="[URL...]", help="Addresses to crawl.")]
File = Annotated[
    Path | None,
    typer.Option("--file", help="URLs or JSON tasks, one a line; or CSV. - is standard input."),
]
Sitemap = Annotated[
    list[str] | None,
    typer.Option("--sitemap", metavar="URL", help="A sitemap, or a site. May be repeated."),
]
Since = Annotated[
    str | None,
    typer.Option("--since", metavar="7d", help="Of sitemaps: only pages changed since then."),
]
Skip = Annotated[
    int | None,
    typer.Option("--skip", min=0, help="Leave out the first lines of the file; 0: begin again."),
]


@with_settings("frontier")
@examples(
    "shoal seed shop https://shop.example/sale",
    "shoal seed shop --file urls.txt",
    "shoal seed shop --sitemap https://shop.example --since 7d",
    'echo \'{"url": "https://shop.example/p/1", "job_type": "product"}\' | shoal seed shop',
)
def seed(
    crawl: CrawlName,
    options: dict[str, Any],
    urls: Urls = None,
    file: File = None,
    sitemap: Sitemap = None,
    since: Since = None,
    skip: Skip = None,
    json: JsonFlag = False,
) -> None:
    """Add URLs to a crawl: as arguments, from a file, from standard input, or from sitemaps.

    A line is a URL, or a task as a JSON object with at least "url". A CSV file begins with the
    names of its columns: url, handler, priority, meta; others become entries of meta. What is none
    of this is reported with its line and skipped. Files may be of any size. Adding again what is
    there does no harm: run a command that was stopped again, and it goes on where it was.

    A sitemap is queued too: the crawl's workers fetch it as they fetch pages, and queue what it
    lists.
    """
    settings = settings_from(options)
    if file is None and not urls and not sitemap:
        if sys.stdin.isatty():
            raise ConfigError("no URLs: give them as arguments, with --file, or on standard input")
        file = STDIN
    sources = Sources(
        urls=urls or [],
        file=file,
        skip=skip,
        sitemaps=sitemap or [],
        reading=uuid4().hex,
        since=time.time() - parse_duration(since) if since else None,
    )
    bad = Bad()
    added, sitemaps = run(_seed(crawl, settings, sources, bad))
    _show(crawl, added, sitemaps, bad.count, json=json)
    raise typer.Exit(2 if bad.count and not added.added + added.duplicates else 0)


class Bad:
    """Counts what is no seed, and tells of the first."""

    count = 0

    def report(self, about: str, reason: Exception) -> None:
        self.count += 1
        if self.count <= SHOWN:
            display.say(f"shoal: {about} skipped: {reason}", err=True)


async def _seed(crawl: str, settings: Settings, sources: Sources, bad: Bad) -> tuple[Added, int]:
    async with frontier_at(settings.frontier) as frontier:
        with bars("seeds") as watch:
            seeder = Seeder(frontier, crawl, bad.report, watch)
            try:
                added = await seeder.seed(sources)
            except asyncio.CancelledError:  # Ctrl-C. What was read last may not be added yet.
                display.say(
                    f"shoal: stopped at line {seeder.line}: {_how_to_go_on(seeder.line, sources)}",
                    err=True,
                )
                raise
    if seeder.went_on_after:
        display.say(
            f"shoal: went on after line {seeder.went_on_after:,} of an earlier try"
            " (--skip 0 begins again)",
            err=True,
        )
    return added, seeder.sitemaps


def _how_to_go_on(line: int, sources: Sources) -> str:
    if sources.file is not None and sources.file.is_file():
        return "the same command goes on"
    return f"--skip {max(line - BATCH - 1, 0)} goes on"


def _show(crawl: str, added: Added, sitemaps: int, bad: int, *, json: bool) -> None:
    if json:
        counts = {"crawl": crawl, "sitemaps": sitemaps, "bad": bad}
        display.print_json(msgspec.to_builtins(added) | counts)
        return
    if bad > SHOWN:
        display.say(f"shoal: and {bad - SHOWN:,} more were skipped", err=True)
    display.say(f"{crawl}: {added.added:,} added, {added.duplicates:,} known already, {bad:,} bad")
    if sitemaps:
        counted = display.counted(sitemaps, "sitemap")
        display.say(f"{crawl}: {counted} queued; workers read them, and queue the pages they list")
