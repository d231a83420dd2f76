"""The archive on top of an object store: it stores pages in one format and reads all formats."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from shoal.archive.blobs import Blobs
from shoal.archive.formats import PageFormat
from shoal.archive.names import crawl_folder
from shoal.archive.objects import Objects
from shoal.archive.port import Archive, OnUnreadable, RawPage
from shoal.errors import MissingExtra, StorageFailed

FOLDERS = ("pages", "warc")


class ObjectArchive(Archive):
    """Stores raw pages as objects, in a folder or a bucket."""

    def __init__(self, objects: Objects, folder: str) -> None:
        """`folder` decides the format for storing: see `PageFormat.folder`."""
        self._objects = objects
        self._formats: dict[str, PageFormat] = {}
        self._own = self._format(folder)

    async def check(self) -> None:
        await self._objects.check()

    async def store(self, crawl: str, pages: Sequence[RawPage]) -> list[str]:
        return await self._own.store(crawl, pages)

    async def pages(self, crawl: str, on_unreadable: OnUnreadable) -> AsyncIterator[RawPage]:
        batches: list[str] = []
        for folder in FOLDERS:
            batches += await self._objects.names(f"{crawl_folder(crawl)}/{folder}")
        for name in sorted(batches, key=_moment):
            async for page in self._format_of(name).pages_in(name, on_unreadable):
                yield page

    async def read(self, place: str) -> RawPage:
        name, _, where = place.rpartition("#")
        if not where.isdecimal():
            raise StorageFailed(f"{self._objects.shown}: not a place: {place!r}")
        return await self._format_of(name).page_at(name, int(where))

    async def close(self) -> None:
        await self._objects.close()

    def _format_of(self, name: str) -> PageFormat:
        _, _, rest = name.partition("/")
        folder = rest.partition("/")[0]
        if folder not in FOLDERS:
            raise StorageFailed(f"{self._objects.shown}: not a batch of pages: {name!r}")
        return self._format(folder)

    def _format(self, folder: str) -> PageFormat:
        if folder not in self._formats:
            make = _warc if folder == "warc" else Blobs
            self._formats[folder] = make(self._objects)
        return self._formats[folder]


def _moment(name: str) -> str:
    return name.rpartition("/")[2]


def _warc(objects: Objects) -> PageFormat:
    try:
        from shoal.archive.warc import Warc
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "warcio":
            raise
        raise MissingExtra("the archive format warc", "warc") from None
    return Warc(objects)
