"""What a results store must know of the files of items. Goes with ResultsContract."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from contract.results_suite import (
    CRAWL,
    LONE_SURROGATE,
    Connect,
    some_fingerprint,
    some_item,
    some_page,
    some_rejected,
)
from shoal.core.files import FileStatus, StoredFile
from shoal.results.port import Batch, Results, RunNote

FILE = some_fingerprint(1)


def some_file(number: int = 1, at: float = 1.0, **changes: Any) -> StoredFile:
    """A stored file; each change overrides a field."""
    values: dict[str, Any] = {
        "url": f"https://shop.example/{number}.png",
        "status": FileStatus.DONE,
        "type": "image/png",
        "size": 2**40,
        "sha256": bytes(range(32)),
        "place": "files/00/01",
        "etag": '"v1"',
        "last_modified": "then",
    }
    return StoredFile(fingerprint=some_fingerprint(number), at=at, **(values | changes))


def not_had(status: FileStatus, at: float = 1.0) -> StoredFile:
    """The same file after a failed download."""
    return StoredFile(
        fingerprint=FILE, url="https://shop.example/1.png", status=status, at=at, error="HTTP 404"
    )


async def all_files(results: Results, crawl: str = CRAWL) -> list[StoredFile]:
    """The whole stream of files."""
    return [file async for file in results.files(crawl)]


class FilesContract:
    """What a store says about the files of items."""

    async def test_a_file_comes_back_as_it_was_saved(self, results: Results) -> None:
        files = [some_file(1), some_file(2, etag=""), not_had(FileStatus.DEAD)]
        files[2].fingerprint = some_fingerprint(3)
        await results.save(CRAWL, Batch([some_page()], [some_item()], files=files))
        wanted = [some_fingerprint(number) for number in range(5)]
        found = await results.files_of(CRAWL, wanted)
        assert found == {file.fingerprint: file for file in files}
        assert type(found[FILE].status) is FileStatus
        assert await results.files_of("another", wanted) == {}
        assert await results.files_of(CRAWL, []) == {}

    async def test_files_alone_are_saved_too(self, results: Results) -> None:
        await results.save(CRAWL, Batch(files=[some_file()]))
        assert await all_files(results) == [some_file()]

    @pytest.mark.parametrize("in_one_batch", [False, True])
    async def test_in_whatever_order_they_come_the_same_is_known(
        self, results: Results, in_one_batch: bool
    ) -> None:
        """A stored file wins over one that is not stored; among equals, the newest wins."""
        said = [
            some_file(at=1.0),
            some_file(at=2.0, place="files/00/02"),
            not_had(FileStatus.DROPPED, at=3.0),
            not_had(FileStatus.DEAD, at=0.5),
        ]
        for number, order in enumerate(itertools.permutations(said)):
            crawl = f"order-{number}"
            batches = [list(order)] if in_one_batch else [[file] for file in order]
            for files in batches:
                await results.save(crawl, Batch(files=files))
            assert await results.files_of(crawl, [FILE]) == {FILE: said[1]}

    async def test_of_what_is_not_stored_the_newest_counts(self, results: Results) -> None:
        for at in (1.0, 3.0, 2.0):
            await results.save(CRAWL, Batch(files=[not_had(FileStatus.DROPPED, at)]))
        assert (await results.files_of(CRAWL, [FILE]))[FILE].at == 3.0

    async def test_all_files_are_streamed_each_once(self, results: Results) -> None:
        files = [some_file(number) for number in range(2_500)]
        await results.save(CRAWL, Batch(files=files))
        found = await all_files(results)
        assert len(found) == len(files)
        assert sorted(found, key=lambda file: file.url) == sorted(files, key=lambda file: file.url)

    async def test_two_writers_of_the_same_files_do_not_wait_for_each_other_for_ever(
        self, connect: Connect
    ) -> None:
        stores = [connect(), connect()]
        files = [some_file(number) for number in range(300)]
        batches = [Batch(files=files), Batch(files=files[::-1])]
        for _ in range(5):
            await asyncio.gather(
                *(store.save(CRAWL, batch) for store, batch in zip(stores, batches, strict=True))
            )
        assert len(await all_files(stores[0])) == len(files)

    async def test_odd_text_of_a_file_costs_the_batch_nothing(self, results: Results) -> None:
        odd = some_file(url=f"https://shop.example/{LONE_SURROGATE}\0", error="\0")
        await results.save(CRAWL, Batch(items=[some_item()], files=[odd]))
        assert len(await all_files(results)) == 1
        assert await results.count(CRAWL) == {"Product": 1}

    async def test_forgetting_a_crawl_forgets_its_files_and_no_others(
        self, results: Results
    ) -> None:
        for crawl in ("a", "b"):
            await results.save(
                crawl, Batch([some_page()], [], [some_rejected()], files=[some_file()])
            )
        await results.forget("a")
        assert await all_files(results, "a") == []
        assert await all_files(results, "b") == [some_file()]

    async def test_items_that_are_gone_still_have_their_files(self, results: Results) -> None:
        old, new = some_file(1, at=1.0), some_file(2, at=5.0)
        await results.save("mon", Batch([], [some_item()], files=[old, some_file(2, at=1.0)]))
        await results.save("tue", Batch(files=[new]))
        for _ in range(2):
            await results.mark_gone("tue", "mon", 9.0)
        assert await results.files_of("tue", [FILE, new.fingerprint]) == {
            FILE: old,
            new.fingerprint: new,
        }

    async def test_where_files_are_is_noted_with_the_run(self, results: Results) -> None:
        for note in (RunNote("x", file_store="file:/a"), RunNote("x", file_store="s3://b/c")):
            await results.note_run(CRAWL, note)
            assert await results.note_of(CRAWL) == note
