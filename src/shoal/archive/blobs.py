"""The archive format `blobs`: each body is stored once, under its digest, and a log describes the
pages that had it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial

from shoal.archive.description import Description, describe, described, page_of
from shoal.archive.formats import PageFormat
from shoal.archive.gzip import compressed, decompressed
from shoal.archive.names import batch_name, blob_name
from shoal.archive.objects import Objects
from shoal.archive.port import OnUnreadable, RawPage
from shoal.errors import StorageFailed, cause_of
from shoal.runtime.patience import patiently

PUTS_AT_ONCE = 16
GETS_AT_ONCE = 8
DIGESTS_KNOWN = 50_000


class Blobs(PageFormat):
    """Writes bodies first, then the log: a worker that dies leaves at most unreferenced bodies."""

    folder = "pages"

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._stored: dict[bytes, None] = {}

    async def store(self, crawl: str, pages: Sequence[RawPage]) -> list[str]:
        bodies = {page.digest: page.body for page in pages if page.digest not in self._stored}
        await self._store_bodies(bodies)
        name = batch_name(crawl, self.folder, ".jsonl.gz")
        log = b"".join(describe(page) + b"\n" for page in pages)
        await self._objects.put(name, await asyncio.to_thread(compressed, log))
        return [f"{name}#{number}" for number in range(1, len(pages) + 1)]

    async def pages_in(self, name: str, on_unreadable: OnUnreadable) -> AsyncIterator[RawPage]:
        try:
            lines = await patiently("archive", partial(self._lines, name))
        except StorageFailed as error:
            on_unreadable(error)
            return
        for start in range(0, len(lines), GETS_AT_ONCE):
            group = enumerate(lines[start : start + GETS_AT_ONCE], start + 1)
            reads = [self._readable(line, f"{name}#{number}") for number, line in group]
            for page in await asyncio.gather(*reads):
                if isinstance(page, StorageFailed):
                    on_unreadable(page)
                else:
                    yield page

    async def page_at(self, name: str, where: int) -> RawPage:
        lines = await self._lines(name)
        place = f"{name}#{where}"
        if not 1 <= where <= len(lines):
            raise StorageFailed(f"{self._objects.shown} has no page at {place}")
        return await self._page(described(lines[where - 1], place), place)

    # Writing

    async def _store_bodies(self, bodies: dict[bytes, bytes]) -> None:
        room = asyncio.Semaphore(PUTS_AT_ONCE)
        try:
            async with asyncio.TaskGroup() as group:
                for digest, body in bodies.items():
                    group.create_task(self._store_body(room, digest, body))
        except BaseExceptionGroup as group_error:
            raise cause_of(group_error) from None

    async def _store_body(self, room: asyncio.Semaphore, digest: bytes, body: bytes) -> None:
        async with room:
            await self._objects.put(blob_name(digest), await asyncio.to_thread(compressed, body))
        self._stored[digest] = None
        if len(self._stored) > DIGESTS_KNOWN:
            del self._stored[next(iter(self._stored))]

    # Reading

    async def _lines(self, name: str) -> list[bytes]:
        return decompressed(await self._objects.get(name), name).splitlines()

    async def _readable(self, line: bytes, place: str) -> RawPage | StorageFailed:
        try:
            description = described(line, place)
            return await patiently("archive", partial(self._page, description, place))
        except StorageFailed as error:
            return error

    async def _page(self, description: Description, place: str) -> RawPage:
        name = blob_name(bytes.fromhex(description.digest))
        data = await self._objects.get(name)
        return page_of(description, await asyncio.to_thread(decompressed, data, name), place)
