"""Bringing seeds into a frontier from wherever people keep them: arguments, files, sitemaps."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec

from shoal.config import Rules, Settings
from shoal.coordinator.bookmarks import Bookmarks
from shoal.coordinator.seedfiles import CSV_SUFFIXES, Seed, read_csv, read_lines
from shoal.coordinator.sitemap_walk import SitemapWalk
from shoal.coordinator.sitemaps import MAX_BYTES
from shoal.errors import BadUrl, ConfigError, UnknownCrawl
from shoal.fetch.http import HttpFetcher
from shoal.frontier.port import Frontier
from shoal.frontier.values import Added
from shoal.policy import AUTO_START_S, parse_rate
from shoal.seeding import BATCH, add_all
from shoal.task import Task
from shoal.waiting import patiently

STDIN = Path("-")
MARK_EVERY = 10_000
"""Lines of a file between two notes of how far it was read."""


class Places(msgspec.Struct, kw_only=True):
    """Where seeds are."""

    urls: list[str] = []
    file: Path | None = None
    """STDIN is standard input."""
    skip: int | None = None
    """Lines at the start of the file that are left out; None: those that are known to be in."""
    sitemaps: list[str] = []
    since: float | None = None
    """Of sitemaps, only pages that changed since then."""


class Sowing:
    """Adds seeds in batches, and says what is none."""

    def __init__(
        self,
        frontier: Frontier,
        crawl: str,
        settings: Settings,
        refused: Callable[[str, Exception], None],
        progress: Callable[[str, int], object],
    ) -> None:
        """`refused` is told what was skipped and why, `progress` how many were read."""
        self._frontier = frontier
        self._crawl = crawl
        self._settings = settings
        self._refused = refused
        self._progress = progress
        self._about = ""
        self.line = 0
        """The line of the file that was read last."""
        self.went_on_after = 0
        """The line after which an earlier reading of the file was taken up again."""
        self._marked = 0

    async def sow(self, places: Places) -> Added:
        """Add everything. Raises ConfigError if a place cannot be read at all."""
        rules = await self._rules()
        marks = self._bookmarks(places)
        if marks is not None and places.skip is None:
            self.went_on_after = await patiently("frontier", marks.line)
        tasks = self._counted(self._tasks(places, rules))
        added = await add_all(
            *(self._frontier, self._crawl, tasks, rules, self._refuse),
            on_batch=partial(self._mark, marks) if marks else None,
        )
        if marks is not None:
            await patiently("frontier", marks.remove)
        return added

    def _bookmarks(self, places: Places) -> Bookmarks | None:
        if places.file is None or not places.file.is_file():
            return None
        return Bookmarks(self._frontier, self._crawl, places.file)

    async def _mark(self, marks: Bookmarks) -> None:
        if self.line - self._marked >= MARK_EVERY:
            self._marked = self.line
            await patiently("frontier", partial(marks.put, self.line))

    async def _rules(self) -> Rules:
        try:
            return (await self._frontier.stats(self._crawl)).rules
        except UnknownCrawl:
            return Rules()

    def _refuse(self, reason: Exception) -> None:
        self._refused(self._about, reason)

    async def _counted(self, tasks: AsyncIterator[Task]) -> AsyncIterator[Task]:
        count = 0
        async for task in tasks:
            count += 1
            if count % BATCH == 0:
                self._progress("read", count)
            yield task

    async def _tasks(self, places: Places, rules: Rules) -> AsyncIterator[Task]:
        for task in self._of_lines(read_lines(url.encode() for url in places.urls), 0):
            yield task
        if places.file is not None:
            skip = self.went_on_after if places.skip is None else places.skip
            for task in self._of_lines(_read(places.file), skip):
                yield task
        if places.sitemaps:
            async for task in self._of_sitemaps(places, rules):
                yield task

    def _of_lines(self, seeds: Iterator[Seed], skip: int) -> Iterator[Task]:
        for seed in seeds:
            self.line, self._about = seed.line, f"seed {seed.line}"
            if seed.line <= skip:
                continue
            if isinstance(seed.task, BadUrl):
                self._refuse(seed.task)
            else:
                yield seed.task

    async def _of_sitemaps(self, places: Places, rules: Rules) -> AsyncIterator[Task]:
        fetcher = HttpFetcher(msgspec.structs.replace(self._settings, max_body_bytes=MAX_BYTES))
        walk = SitemapWalk(
            fetcher, self._unreadable, pause_s=_pause_s(rules.rate), since=places.since
        )
        try:
            for address in places.sitemaps:
                async for url in walk.pages(address):
                    self._about = url
                    yield Task(url=url)
        finally:
            await fetcher.close()

    def _unreadable(self, sitemap: str, reason: Exception) -> None:
        self._refused(f"sitemap {sitemap}", reason)


def _pause_s(rate: str) -> float:
    """Between two requests. Nobody here adapts to a host, so `auto` is as careful as it begins."""
    parsed = parse_rate(rate)
    return AUTO_START_S if parsed.auto else parsed.interval_s


def _read(file: Path) -> Iterator[Seed]:
    if file == STDIN:
        yield from read_lines(sys.stdin.buffer)
        return
    suffix = file.suffix.lower()
    try:
        with file.open("rb") as lines:
            if suffix in CSV_SUFFIXES:
                yield from read_csv(lines, delimiter="\t" if suffix == ".tsv" else ",")
            else:
                yield from read_lines(lines)
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from None
