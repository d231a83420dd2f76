"""Finds pages of a crawl that are nearly the same, by their simhashes, and marks them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec

from shoal.errors import ConfigError, UnknownCrawl
from shoal.export import Progress
from shoal.results.near import NearPages
from shoal.results.port import NearPage, Results

BATCH = 1_000
MAX_EXAMPLES = 10


class Example(msgspec.Struct):
    """Two pages that are alike."""

    url: str
    like: str
    distance: int
    """The number of bits in which their simhashes differ."""


class Duplicates(msgspec.Struct):
    """How many near duplicates a crawl has, with examples."""

    pages: int = 0
    """Pages that have a simhash."""
    near: int = 0
    """Pages that are like an earlier one."""
    groups: int = 0
    """Pages that later ones are like."""
    examples: list[Example] = []


async def mark_duplicates(
    results: Results, crawl: str, progress: Progress = lambda stage, count: None
) -> Duplicates:
    """Find the pages that are nearly the same, and mark them in the results store.

    Raises ConfigError if no page has a simhash, UnknownCrawl.
    """
    pages = NearPages()
    found = Duplicates()
    groups: set[bytes] = set()
    examples: list[NearPage] = []
    async for batch in _batches(results.signatures(crawl)):
        near = [page for signature in batch if (page := pages.add(*signature)) is not None]
        if near:
            await results.mark_near(crawl, near)
        found.near += len(near)
        groups.update(page.like for page in near)
        examples += near[: MAX_EXAMPLES - len(examples)]
        progress("compared", pages.count)
    if not pages.count:
        await _refuse(results, crawl)
    found.pages = pages.count
    found.groups = len(groups)
    found.examples = [await _example(results, crawl, page) for page in examples]
    return found


async def _batches(
    signatures: AsyncIterator[tuple[bytes, int]],
) -> AsyncIterator[list[tuple[bytes, int]]]:
    batch: list[tuple[bytes, int]] = []
    async for signature in signatures:
        batch.append(signature)
        if len(batch) >= BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


async def _refuse(results: Results, crawl: str) -> None:
    if await results.note_of(crawl) is None and not await results.count(crawl):
        raise UnknownCrawl(crawl)
    raise ConfigError(f"no page of '{crawl}' has a simhash: run it with --simhash")


async def _example(results: Results, crawl: str, near: NearPage) -> Example:
    return Example(
        await url_of(results, crawl, near.fingerprint),
        await url_of(results, crawl, near.like),
        near.distance,
    )


async def url_of(results: Results, crawl: str, fingerprint: bytes) -> str:
    """The URL of a page. Its fingerprint if the page log does not have the page any more."""
    pages = await results.pages_of(crawl, fingerprint)
    return pages[-1].url if pages else fingerprint.hex()
