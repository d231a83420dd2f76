"""shoal seed: more URLs for a crawl."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.cli.options import CrawlName, settings_from, with_settings
from shoal.config import Rules
from shoal.errors import BadUrl, ConfigError, UnknownCrawl
from shoal.eventloop import run
from shoal.frontier import frontier_at
from shoal.frontier.port import Added, Frontier
from shoal.seeding import add_all, read_seed
from shoal.task import Task

Urls = Annotated[list[str] | None, typer.Argument(metavar="[URL...]", help="Addresses to crawl.")]
File = Annotated[
    Path | None, typer.Option("--file", help="One URL or JSON task per line; - is standard input.")
]


@with_settings("frontier")
def seed(crawl: CrawlName, options: dict[str, Any], urls: Urls = None, file: File = None) -> None:
    """Add URLs to a crawl: as arguments, from a file, or from standard input.

    A line is a URL, or a task as a JSON object with at least "url". Lines that are neither are
    reported with their number and skipped. Seeds for a crawl that nobody has started are kept.

    Examples:

      shoal seed shop https://shop.example/sale

      shoal seed shop --file urls.txt

      echo '{"url": "https://shop.example/p/1", "job_type": "product"}' | shoal seed shop
    """
    address = settings_from(options).frontier
    if not urls and file is None and sys.stdin.isatty():
        raise ConfigError("no URLs: give them as arguments, with --file, or on standard input")
    bad = BadLines()
    tasks = _tasks(urls or [], file, bad)
    added = run(_seed(address, crawl, tasks, bad))
    typer.echo(f"{crawl}: {added.added} added, {added.duplicates} known already, {bad.count} bad")
    raise typer.Exit(2 if bad.count and not added.added + added.duplicates else 0)


class BadLines:
    """Counts and reports lines that are no seeds."""

    count = 0
    line = 0

    def report(self, reason: Exception) -> None:
        self.count += 1
        typer.echo(f"shoal: seed {self.line} skipped: {reason}", err=True)


async def _seed(address: str, crawl: str, tasks: Iterable[Task], bad: BadLines) -> Added:
    async with frontier_at(address) as frontier:
        rules = await _rules(frontier, crawl)
        return await add_all(frontier, crawl, _stream(tasks), rules, bad.report)


async def _rules(frontier: Frontier, crawl: str) -> Rules:
    try:
        return (await frontier.stats(crawl)).rules
    except UnknownCrawl:
        return Rules()


async def _stream(tasks: Iterable[Task]) -> AsyncIterator[Task]:
    for task in tasks:
        yield task


def _tasks(urls: list[str], file: Path | None, bad: BadLines) -> Iterator[Task]:
    from_lines = _lines(file) if file is not None or not urls else iter(())
    for line in chain((url.encode() for url in urls), from_lines):
        bad.line += 1
        text = line.strip()
        if text:
            try:
                yield read_seed(text)
            except BadUrl as error:
                bad.report(error)


def _lines(file: Path | None) -> Iterator[bytes]:
    if file is None or str(file) == "-":
        yield from sys.stdin.buffer
        return
    try:
        with file.open("rb") as lines:
            yield from lines
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from None
