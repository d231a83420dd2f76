"""shoal seed: adds URLs to a crawl."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import typer

from shoal.cli import display
from shoal.cli.bars import bars
from shoal.cli.examples import examples
from shoal.cli.options import (
    CrawlName,
    JsonFlag,
    refuse_missing_stores,
    settings_from,
    with_settings,
)
from shoal.config import Settings
from shoal.core.policy import parse_duration
from shoal.errors import ConfigError
from shoal.frontier import frontier_at
from shoal.frontier.events import SEEDED, note_event
from shoal.frontier.values import Added, Repaired
from shoal.insight.figures import counted
from shoal.insight.json import repaired_json, seeded_json
from shoal.results import open_results
from shoal.runtime.eventloop import run
from shoal.seeds import repairing
from shoal.seeds.seeding import BATCH
from shoal.seeds.sources import STDIN, Seeder, Sources

SHOWN = 20
"""How many bad seeds are listed; the others are only counted."""

Urls = Annotated[list[str] | None, typer.Argument(metavar="URL", help="Addresses to crawl.")]
File = Annotated[
    Path | None,
    typer.Option("--file", help="URLs or JSON tasks, one per line, or CSV; - is standard input."),
]
Sitemap = Annotated[
    list[str] | None,
    typer.Option("--sitemap", metavar="URL", help="A sitemap, or a site. May be repeated."),
]
Since = Annotated[
    str | None,
    typer.Option("--since", metavar="7d", help="Only pages of sitemaps that changed since then."),
]
Skip = Annotated[
    int | None,
    typer.Option("--skip", min=0, help="Skip this many lines of the file. 0 starts over."),
]
Repair = Annotated[
    bool,
    typer.Option("--repair", help="First write off tasks that a broker lost, to find them again."),
]


@with_settings("frontier", "results")
@examples(
    "shoal seed shop https://shop.example/sale",
    "shoal seed shop --file urls.txt",
    "shoal seed shop --sitemap https://shop.example --since 7d",
    'echo \'{"url": "https://shop.example/p/1", "job_type": "product"}\' | shoal seed shop',
    "shoal seed shop --repair",
)
def seed(
    crawl: CrawlName,
    options: dict[str, Any],
    urls: Urls = None,
    file: File = None,
    sitemap: Sitemap = None,
    since: Since = None,
    skip: Skip = None,
    repair: Repair = False,
    json: JsonFlag = False,
) -> None:
    """Add URLs to a crawl.

    URLs come as arguments, from a file, from standard input, or from sitemaps.

    A line is a URL, or a task as a JSON object with at least "url". A CSV file begins with the
    names of its columns: url, handler, priority, meta; all others become entries of meta. Anything
    else is reported with its line number and skipped. Files may be of any size. Adding a URL twice
    does no harm. To continue a command that was stopped, run it again.

    A sitemap is queued too: the crawl's workers fetch it like a page, and queue what it lists.

    If a broker has lost tasks, because somebody emptied its queues, --repair writes them off. It
    also forgets that they, and the pages that led to others, were seen, so that they can be found
    again from the seeds. Add the seeds again with the same command, or run `shoal crawl` again. The
    crawl must be paused.
    """
    settings = settings_from(options)
    repaired = None
    if repair:
        repaired = run(_repair(crawl, settings))
        if not (urls or file or sitemap):
            _show_repaired(crawl, repaired, json=json)
            return
    sources = _sources(urls or [], file, sitemap or [], since, skip)
    bad = Bad()
    added, sitemaps = run(_seed(crawl, settings, sources, bad))
    if repaired is not None and not json:
        _show_repaired(crawl, repaired, json=False)
    _show(crawl, added, sitemaps, bad.count, repaired, json=json)
    raise typer.Exit(2 if bad.count and not added.any else 0)


def _sources(
    urls: list[str], file: Path | None, sitemaps: list[str], since: str | None, skip: int | None
) -> Sources:
    """Where to read seeds: from standard input if nothing else is named."""
    if file is None and not urls and not sitemaps:
        if sys.stdin.isatty():
            raise ConfigError("no URLs: give them as arguments, with --file, or on standard input")
        file = STDIN
    return Sources(
        urls=urls,
        file=file,
        skip=skip,
        sitemaps=sitemaps,
        reading=uuid4().hex,
        since=time.time() - parse_duration(since) if since else None,
    )


async def _repair(crawl: str, settings: Settings) -> Repaired:
    refuse_missing_stores(settings, ("frontier",))
    async with frontier_at(settings.frontier, settings.state) as frontier:
        if (await frontier.stats(crawl)).done:
            refuse_missing_stores(settings, ("results",))
        results = open_results(settings.results)
        try:
            return await repairing.repair(frontier, results, crawl)
        finally:
            await results.close()


def _show_repaired(crawl: str, repaired: Repaired, *, json: bool) -> None:
    if json:
        display.print_json(repaired_json(crawl, repaired))
        return
    if not repaired.lost:
        display.say(f"{crawl}: nothing is missing in the broker")
        return
    lost = counted(repaired.lost, "task")
    display.say(f"{crawl}: {lost} lost in the broker, written off as dropped")
    if repaired.why_not:
        display.say(f"{crawl}: they cannot be found again: {repaired.why_not}; --fresh starts over")
    else:
        display.say(
            f"{crawl}: {repaired.forgotten:,} URLs count as new now: those, and pages that led to"
            " others; add the seeds again to find them"
        )


class Bad:
    """Counts bad seeds, and prints the first of them."""

    count = 0

    def report(self, about: str, reason: Exception) -> None:
        """Count a seed that was skipped."""
        self.count += 1
        if self.count <= SHOWN:
            display.say(f"shoal: {about} skipped: {reason}", err=True)


async def _seed(crawl: str, settings: Settings, sources: Sources, bad: Bad) -> tuple[Added, int]:
    async with frontier_at(settings.frontier, settings.state) as frontier:
        with bars("seeds") as watch:
            seeder = Seeder(frontier, crawl, bad.report, watch)
            try:
                added = await seeder.seed(sources)
            except asyncio.CancelledError:  # Ctrl-C. The last lines may not be added yet.
                how = _how_to_continue(seeder.line, sources)
                display.say(f"shoal: stopped at line {seeder.line}: {how}", err=True)
                raise
        if added.added:
            text = counted(added.added, "seed")
            await note_event(frontier.notes, crawl, SEEDED, text, by="command")
    if seeder.went_on_after:
        line = f"{seeder.went_on_after:,}"
        display.say(f"shoal: continued after line {line} (--skip 0 starts over)", err=True)
    return added, seeder.sitemaps


def _how_to_continue(line: int, sources: Sources) -> str:
    if sources.file is not None and sources.file.is_file():
        return "to continue, run the same command again"
    return f"to continue, add --skip {max(line - BATCH - 1, 0)}"


def _show(
    crawl: str, added: Added, sitemaps: int, bad: int, repaired: Repaired | None, *, json: bool
) -> None:
    if json:
        repair = repaired_json(crawl, repaired) if repaired else {}
        display.print_json(repair | seeded_json(crawl, added, sitemaps=sitemaps, bad=bad))
        return
    if bad > SHOWN:
        display.say(f"shoal: and {bad - SHOWN:,} more were skipped", err=True)
    display.say(f"{crawl}: {added.told}, {bad:,} bad")
    if sitemaps:
        queued = counted(sitemaps, "sitemap")
        display.say(f"{crawl}: {queued} queued; workers read them and queue the pages they list")
