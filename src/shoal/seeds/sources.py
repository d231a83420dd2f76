"""Adds seeds to a frontier from command line arguments, files and sitemaps."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec

from shoal.config import Rules
from shoal.core.task import Task
from shoal.errors import BadUrl, ConfigError, UnknownCrawl
from shoal.frontier.patient import patient
from shoal.frontier.port import IntakeAndNotes
from shoal.frontier.values import Added
from shoal.seeds.bookmarks import Bookmarks
from shoal.seeds.files import CSV_SUFFIXES, Seed, read_csv, read_lines
from shoal.seeds.seeding import BATCH, add_all
from shoal.seeds.sitemap_tasks import SitemapNote, sitemap_task

STDIN = Path("-")
MARK_EVERY = 10_000
"""How many lines of a file are read between two bookmarks."""


class Sources(msgspec.Struct, kw_only=True):
    """The sources to read seeds from."""

    urls: list[str] = []
    file: Path | None = None
    """STDIN is standard input."""
    skip: int | None = None
    """How many lines at the start of the file to skip. None: those that the bookmark says are in
    the frontier."""
    sitemaps: list[str] = []
    reading: str = ""
    """The id of this reading of sitemaps. With a new id, they are read again."""
    since: float | None = None
    """Take only pages from sitemaps that changed since this time."""


class Seeder:
    """Adds seeds to a crawl in batches, and reports rejected seeds."""

    def __init__(
        self,
        frontier: IntakeAndNotes,
        crawl: str,
        rejected: Callable[[str, Exception], None],
        progress: Callable[[str, int], object],
    ) -> None:
        """`rejected` is called with each skipped seed and the reason, `progress` with the number of
        seeds read."""
        self._frontier = frontier
        self._crawl = crawl
        self._rejected = rejected
        self._progress = progress
        self._about = ""
        self.line = 0
        """The last line read of the file."""
        self.went_on_after = 0
        """The line after which this run continued an earlier reading of the file."""
        self._marked = 0
        self.sitemaps = 0
        """How many sitemaps were queued. Workers read them."""

    async def seed(self, sources: Sources) -> Added:
        """Add all seeds. Raises ConfigError if a source cannot be read at all."""
        rules = await self._rules()
        marks = self._bookmarks(sources)
        if marks is not None and sources.skip is None:
            self.went_on_after = await marks.line()
        added = await add_all(
            self._frontier,
            self._crawl,
            self._counted(sources),
            rules,
            self._reject,
            on_batch=partial(self._mark, marks) if marks else None,
        )
        if marks is not None:
            await marks.remove()
        sitemaps = self._of_sitemaps(sources)
        queued = await add_all(self._frontier, self._crawl, sitemaps, rules, self._reject)
        self.sitemaps = queued.added
        return added + queued

    def _bookmarks(self, sources: Sources) -> Bookmarks | None:
        if sources.file is None or not sources.file.is_file():
            return None
        return Bookmarks(patient(self._frontier), self._crawl, sources.file)

    async def _mark(self, marks: Bookmarks) -> None:
        if self.line - self._marked >= MARK_EVERY:
            self._marked = self.line
            await marks.put(self.line)

    async def _rules(self) -> Rules:
        try:
            return (await self._frontier.stats(self._crawl)).rules
        except UnknownCrawl:
            return Rules()

    def _reject(self, reason: Exception) -> None:
        self._rejected(self._about, reason)

    async def _counted(self, sources: Sources) -> AsyncIterator[Task]:
        for count, task in enumerate(self._tasks(sources), 1):
            if count % BATCH == 0:
                self._progress("read", count)
            yield task

    def _tasks(self, sources: Sources) -> Iterator[Task]:
        yield from self._of_lines(read_lines(url.encode() for url in sources.urls), 0)
        if sources.file is not None:
            skip = self.went_on_after if sources.skip is None else sources.skip
            yield from self._of_lines(_read(sources.file), skip)

    def _of_lines(self, seeds: Iterator[Seed], skip: int) -> Iterator[Task]:
        for seed in seeds:
            self.line, self._about = seed.line, f"seed {seed.line}"
            if seed.line <= skip:
                continue
            if isinstance(seed.task, BadUrl):
                self._reject(seed.task)
            else:
                yield seed.task

    async def _of_sitemaps(self, sources: Sources) -> AsyncIterator[Task]:
        for address in sources.sitemaps:
            self._about = f"sitemap {address}"
            try:
                task = sitemap_task(address, SitemapNote(sources.reading, sources.since))
            except BadUrl as error:
                self._reject(error)
            else:
                yield task


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
