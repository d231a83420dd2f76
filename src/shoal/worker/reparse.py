"""Parses archived pages again: the spider's handlers run, and nothing is fetched from the site."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial

import msgspec
from multidict import CIMultiDict

from shoal.archive.port import Archive, RawPage
from shoal.errors import OwnFault, StorageFailed
from shoal.results.port import Batch, Keep, Results
from shoal.runtime.patience import patiently
from shoal.spider.asking import Drop
from shoal.spider.page import Page
from shoal.spider.reading import Reading, read
from shoal.spider.spider import Spider

BATCH_ROWS = 500
REASONS_KEPT = 5
REASON_CHARACTERS = 200


class Reparsed(msgspec.Struct):
    """Counts of what parsing an archive again has given so far."""

    pages: int = 0
    items: int = 0
    rejected: int = 0
    failed: int = 0
    """Pages whose handler raised, or that the archive could not give back."""
    reasons: list[str] = []
    """The reasons of the first few failures."""

    def note_failure(self, reason: str) -> None:
        """Count a page that gave nothing."""
        self.failed += 1
        if len(self.reasons) < REASONS_KEPT:
            line = " ".join(reason.split())[:REASON_CHARACTERS]
            self.reasons.append(line.encode("utf-8", "replace").decode())


Progress = Callable[[Reparsed], object]


async def reparse(
    crawl: str,
    spider: Spider,
    archive: Archive,
    results: Results,
    keep: Keep,
    *,
    canonical: bool = False,
    max_links: int | None = None,
    progress: Progress = lambda so_far: None,
) -> Reparsed:
    """Run the handlers over all archived pages of a crawl, and save what they give.

    An item has the time of its page: it replaces what was read from the same answer, and never what
    was read from a newer one. Links are not followed, and files of items are not fetched; at most
    `max_links` links of a page are looked at. The crawl may run meanwhile.
    """
    done = Reparsed()
    batch = Batch(keep=keep)
    async for reading in _readings(crawl, spider, archive, done, canonical, max_links):
        batch.items += reading.items
        batch.rejected += reading.rejected
        batch.files += reading.no_files
        if len(batch.items) + len(batch.rejected) + len(batch.files) >= BATCH_ROWS:
            await _save(crawl, results, batch)
            batch = Batch(keep=keep)
        progress(done)
    await _save(crawl, results, batch)
    return done


async def _readings(
    crawl: str,
    spider: Spider,
    archive: Archive,
    done: Reparsed,
    canonical: bool,
    max_links: int | None,
) -> AsyncIterator[Reading]:
    """Yield what the handlers read from each page; count it in `done`."""

    def unreadable(error: StorageFailed) -> None:
        done.note_failure(str(error))

    async for raw in archive.pages(crawl, unreadable):
        page = page_of(raw)
        page.max_links = max_links
        try:
            reading = await read(spider, page, raw.fetched_at, canonical=canonical)
        except OwnFault as own_fault:
            reading = Reading(error=own_fault)
        done.pages += 1
        done.items += len(reading.items)
        done.rejected += len(reading.rejected)
        if (error := reading.error) is not None and not isinstance(error, Drop):
            done.note_failure(f"{raw.task.url}: {type(error).__name__}: {error}")
        yield reading


def page_of(raw: RawPage) -> Page:
    """Return the page as the handler saw it.

    Earlier versions archived a page that was fetched with an identity as a task of exactly that
    identity.
    """
    session = raw.identity or raw.task.session or ""
    return Page(
        url=raw.task.url,
        status=raw.status,
        headers=CIMultiDict(raw.headers),
        body=raw.body,
        task=raw.task,
        fingerprint=raw.fingerprint,
        session=session if "#" in session else None,
    )


async def _save(crawl: str, results: Results, batch: Batch) -> None:
    if batch.items or batch.rejected or batch.files:
        await patiently("results store", partial(results.save, crawl, batch))
