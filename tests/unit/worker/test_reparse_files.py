"""Reading archived pages again: what is told of the files of their items."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

from shoal.archive.port import Archive, OnUnreadable, RawPage
from shoal.core.task import Task
from shoal.results.port import Batch, Keep, Results
from shoal.spider.page import Page
from shoal.spider.spider import Spider
from shoal.worker.reparse import reparse

URL = "https://shop.example/1"


class Pictures(Spider):
    def parse(self, page: Page) -> Iterator[Any]:
        yield page.files(["data:,x", *(f"/{n}.png" for n in range(50))], item={"sku": "a"})


class Kept:
    """An archive of one page, and results."""

    def __init__(self) -> None:
        self.saved: list[Batch] = []

    async def pages(self, crawl: str, on_unreadable: OnUnreadable) -> AsyncIterator[RawPage]:
        yield RawPage(
            task=Task(url=URL),
            fingerprint=bytes(8),
            status=200,
            headers=[],
            fetched_at=5.0,
            body=b"",
            digest=b"",
        )

    async def save(self, crawl: str, batch: Batch) -> None:
        self.saved.append(batch)


async def test_why_some_are_never_asked_for_is_told_and_of_too_many_only_the_first() -> None:
    kept = Kept()
    archive, results = cast(Archive, kept), cast(Results, kept)
    await reparse("crawl", Pictures(), archive, results, Keep(), max_links=3)
    (batch,) = kept.saved
    assert [(file.url, file.error, file.at) for file in batch.files] == [
        ("data:,x", "no web address", 5.0),
        ("/2.png", "more than 3 files of one page (max_links_per_page)", 5.0),
    ]
    assert batch.items[0].data.count(b".png") == 3
