"""Remembers how far a file of seeds was read, so that a stopped command can continue there."""

from __future__ import annotations

from pathlib import Path

import msgspec

from shoal.errors import UnknownCrawl
from shoal.frontier.board import read
from shoal.frontier.port import HasNotes


class Bookmark(msgspec.Struct):
    """A position in a file of seeds."""

    line: int
    """All seeds up to this line are in the frontier."""
    made_at: float
    """When the crawl was created. If it was started over since, the bookmark is not valid."""


class Bookmarks:
    """The bookmark of one file for one crawl. A changed file counts as another file."""

    def __init__(self, frontier: HasNotes, crawl: str, file: Path) -> None:
        self._frontier = frontier
        self._crawl = crawl
        self._topic = f"seeds/{crawl}"
        self._name = _identity(file)
        self._made_at: float | None = None

    async def line(self) -> int:
        """The line to continue after. 0 if there is no bookmark."""
        mark = await read(self._frontier.notes, self._topic, self._name, Bookmark)
        if mark is None or mark.made_at != await self._crawl_made_at():
            return 0
        return mark.line

    async def put(self, line: int) -> None:
        """Store that all seeds up to this line are in the frontier."""
        if self._made_at is None:
            self._made_at = await self._crawl_made_at()
        mark = msgspec.json.encode(Bookmark(line, self._made_at or 0.0))
        await self._frontier.notes.write(self._topic, self._name, mark)

    async def remove(self) -> None:
        """Remove the bookmark, once the file was read to its end."""
        await self._frontier.notes.write(self._topic, self._name, None)

    async def _crawl_made_at(self) -> float | None:
        try:
            return (await self._frontier.stats(self._crawl)).created_at
        except UnknownCrawl:
            return None


def _identity(file: Path) -> str:
    stat = file.stat()
    return f"{file.resolve()} {stat.st_size} {stat.st_mtime_ns}"
