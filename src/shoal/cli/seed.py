"""shoal seed: more URLs for a crawl."""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from shoal import config
from shoal.cli import display
from shoal.cli.bars import bars
from shoal.cli.options import CrawlName, JsonFlag, settings_from, with_settings
from shoal.config import Rules, Settings
from shoal.coordinator.seedfiles import CSV_SUFFIXES, Seed, read_csv, read_lines
from shoal.coordinator.sitemap_walk import SitemapWalk
from shoal.coordinator.sitemaps import MAX_BYTES
from shoal.errors import BadUrl, ConfigError, UnknownCrawl
from shoal.eventloop import run
from shoal.frontier import frontier_at
from shoal.frontier.port import Added, Frontier
from shoal.policy import parse_duration, parse_rate
from shoal.seeding import BATCH, add_all
from shoal.task import Task

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
Skip = Annotated[int, typer.Option("--skip", min=0, help="Leave out the first lines of the file.")]


@with_settings("frontier", "user_agent", "allow_private")
def seed(
    crawl: CrawlName,
    options: dict[str, Any],
    urls: Urls = None,
    file: File = None,
    sitemap: Sitemap = None,
    since: Since = None,
    skip: Skip = 0,
    json: JsonFlag = False,
) -> None:
    """Add URLs to a crawl: as arguments, from a file, from standard input, or from sitemaps.

    A line is a URL, or a task as a JSON object with at least "url". A CSV file begins with the
    names of its columns: url, handler, priority, meta; others become entries of meta. What is none
    of this is reported with its line and skipped. Files may be of any size. Adding again what is
    there does no harm, so a run that was stopped can be repeated; --skip saves the time.

    Examples:

      shoal seed shop https://shop.example/sale

      shoal seed shop --file urls.txt

      shoal seed shop --sitemap https://shop.example --since 7d

      echo '{"url": "https://shop.example/p/1", "job_type": "product"}' | shoal seed shop
    """
    settings = settings_from(options)
    from_stdin = file is None and not urls and not sitemap
    if from_stdin and sys.stdin.isatty():
        raise ConfigError("no URLs: give them as arguments, with --file, or on standard input")
    changed_since = time.time() - parse_duration(since) if since else None
    seeding = Seeding(crawl, settings, changed_since)
    try:
        added = run(seeding.run(urls or [], file, sitemap or [], skip, from_stdin=from_stdin))
    except KeyboardInterrupt:
        typer.echo(f"shoal: stopped at line {seeding.line}: {_go_on(seeding.line)}", err=True)
        raise typer.Exit(130) from None
    _show(crawl, added, seeding.bad, json=json)
    raise typer.Exit(2 if seeding.bad and not added.added + added.duplicates else 0)


def _go_on(line: int) -> str:
    # What was read last may not have been added yet.
    return f"--skip {max(line - BATCH - 1, 0)} goes on"


def _show(crawl: str, added: Added, bad: int, *, json: bool) -> None:
    if json:
        display.print_json(msgspec.to_builtins(added) | {"crawl": crawl, "bad": bad})
        return
    if bad > SHOWN:
        typer.echo(f"shoal: and {bad - SHOWN:,} more were skipped", err=True)
    typer.echo(f"{crawl}: {added.added:,} added, {added.duplicates:,} known already, {bad:,} bad")


class Seeding:
    """Brings seeds from all their places into the frontier, and counts what is none."""

    def __init__(self, crawl: str, settings: Settings, since: float | None) -> None:
        self._crawl = crawl
        self._settings = settings
        self._since = since
        self._about = ""
        self.line = 0
        """The line of the file that was read last."""
        self.bad = 0

    async def run(
        self,
        given: list[str],
        file: Path | None,
        sitemaps: list[str],
        skip: int,
        *,
        from_stdin: bool,
    ) -> Added:
        """Add everything. Raises ConfigError if a place cannot be read at all."""
        async with frontier_at(self._settings.frontier) as frontier:
            rules = await _rules(frontier, self._crawl)
            with bars("seeds") as watch:
                tasks = self._tasks(given, file, sitemaps, skip, rules, from_stdin=from_stdin)
                counted = _counted(tasks, watch)
                return await add_all(frontier, self._crawl, counted, rules, self._refuse)

    def _refuse(self, reason: Exception) -> None:
        self.bad += 1
        if self.bad <= SHOWN:
            typer.echo(f"shoal: {self._about} skipped: {reason}", err=True)

    async def _tasks(
        self,
        given: list[str],
        file: Path | None,
        sitemaps: list[str],
        skip: int,
        rules: Rules,
        *,
        from_stdin: bool,
    ) -> AsyncIterator[Task]:
        for task in self._of_lines(read_lines(url.encode() for url in given), 0):
            yield task
        if file is not None or from_stdin:
            for task in self._of_lines(_read(file), skip):
                yield task
        if sitemaps:
            async for task in self._of_sitemaps(sitemaps, rules):
                yield task

    def _of_lines(self, seeds: Iterator[Seed], skip: int) -> Iterator[Task]:
        for self.line, task in seeds:
            if self.line <= skip:
                continue
            self._about = f"seed {self.line}"
            if isinstance(task, BadUrl):
                self._refuse(task)
            else:
                yield task

    async def _of_sitemaps(self, sitemaps: list[str], rules: Rules) -> AsyncIterator[Task]:
        # Imported late: aiohttp takes a third of the time in which this command answers.
        from shoal.fetch.http import HttpFetcher

        fetcher = HttpFetcher(msgspec.structs.replace(self._settings, max_body_bytes=MAX_BYTES))
        pause_s = parse_rate(rules.rate).interval_s
        walk = SitemapWalk(fetcher, self._unreadable, pause_s=pause_s, since=self._since)
        try:
            for address in sitemaps:
                async for url in walk.pages(address):
                    self._about = url
                    yield Task(url=url)
        finally:
            await fetcher.close()

    def _unreadable(self, sitemap: str, reason: Exception) -> None:
        self._about = f"sitemap {sitemap}"
        self._refuse(reason)


async def _counted(tasks: AsyncIterator[Task], watch: Any) -> AsyncIterator[Task]:
    count = 0
    async for task in tasks:
        count += 1
        if count % BATCH == 0:
            watch("read", count)
        yield task


async def _rules(frontier: Frontier, crawl: str) -> Rules:
    try:
        return (await frontier.stats(crawl)).rules
    except UnknownCrawl:
        return config.Rules()


def _read(file: Path | None) -> Iterator[Seed]:
    if file is None or str(file) == "-":
        yield from read_lines(sys.stdin.buffer)
        return
    try:
        with closing(file.open("rb")) as lines:
            if file.suffix.lower() in CSV_SUFFIXES:
                is_tabbed = file.suffix.lower() == ".tsv"
                yield from read_csv(lines, delimiter="\t" if is_tabbed else ",")
            else:
                yield from read_lines(lines)
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from None
