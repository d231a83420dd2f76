"""What every results store must do. A backend subclasses the suite and supplies one fixture:

    class TestMyStore(ResultsContract):
        @pytest.fixture
        async def connect(self) -> AsyncIterator[Callable[[], Results]]: ...

Each call of `connect` opens one more connection to the same store, which was empty before the test;
the fixture closes them all.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import tracemalloc
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shoal.core.records import RejectedItem, StoredItem
from shoal.errors import StorageFailed
from shoal.results.port import (
    STREAM_BYTES,
    Batch,
    Keep,
    NearPage,
    PageLog,
    Results,
    RunNote,
    Wanted,
)

Connect = Callable[[], Results]

CRAWL = "shop"
NOT_A_TEXT = cast(str, None)
LONE_SURROGATE = "\ud800"

_numbers = itertools.count()
_moments = st.integers(0, 2 * 10**15).map(lambda microseconds: microseconds / 1e6)


def some_fingerprint(number: int) -> bytes:
    """Eight bytes. Every other fingerprint begins with a set bit: it is negative as an integer."""
    return bytes([0xFF if number % 2 else 0x01]) + number.to_bytes(7)


def some_item(key: str = "k1", *, at: float = 1.0, **changes: Any) -> StoredItem:
    """A stored item; each change overrides a field."""
    values: dict[str, Any] = {
        "kind": "Product",
        # In the form in which stores return it: no white space, no needless escapes.
        "data": json.dumps(
            {"sku": key, "at": f"{at}"}, ensure_ascii=False, separators=(",", ":")
        ).encode(errors="backslashreplace"),
        "url": f"https://shop.example/{key}",
        "fingerprint": some_fingerprint(1),
    }
    return StoredItem(key=key, scraped_at=at, **(values | changes))


def some_page(**changes: Any) -> PageLog:
    """A log entry; each change overrides a field."""
    values: dict[str, Any] = {
        "fingerprint": some_fingerprint(1),
        "url": "https://shop.example/1",
        "worker": "w1",
        "attempt": 1,
        "started_at": 10.25,
        "duration_s": 0.5,
        "verdict": "done",
    }
    return PageLog(**(values | changes))


def some_rejected(**changes: Any) -> RejectedItem:
    """A rejected item; each change overrides a field."""
    values: dict[str, Any] = {
        "kind": "Product",
        "data": '{"price": "free"}',
        "reason": "price: expected float",
        "url": "https://shop.example/1",
        "fingerprint": some_fingerprint(1),
        "scraped_at": 1.0,
    }
    return RejectedItem(**(values | changes))


async def all_items(
    results: Results, crawl: str = CRAWL, kind: str | None = None
) -> list[StoredItem]:
    """The whole stream of items."""
    return [item async for item in results.items(crawl, Wanted(kind=kind))]


async def wanted_keys(results: Results, wanted: Wanted) -> list[str]:
    """The keys of the items that match `wanted`."""
    return [item.key async for item in results.items(CRAWL, wanted)]


async def readings(results: Results, key: str = "k1", crawl: str = CRAWL) -> list[float]:
    """The times of the readings of a product that the store keeps."""
    return [item.scraped_at for item in await results.history(crawl, "Product", key)]


async def all_rejected(results: Results, crawl: str = CRAWL) -> list[RejectedItem]:
    """The whole stream of rejected items."""
    return [item async for item in results.rejected(crawl)]


async def total(results: Results, crawl: str = CRAWL) -> int:
    """How many items a crawl has."""
    return sum((await results.count(crawl)).values())


async def everything(results: Results, crawl: str = CRAWL) -> tuple[Any, ...]:
    """All that the store returns for a crawl whose fingerprints are numbered below 5."""
    fingerprints = [some_fingerprint(number) for number in range(5)]
    return (
        await all_items(results, crawl),
        await results.count(crawl),
        await all_rejected(results, crawl),
        [await results.pages_of(crawl, fingerprint) for fingerprint in fingerprints],
        [await results.items_of(crawl, fingerprint) for fingerprint in fingerprints],
        [await results.rejected_of(crawl, fingerprint) for fingerprint in fingerprints],
        [await results.history(crawl, "Product", key) for key in ("k1", "a", "b")],
    )


class ResultsContract:
    """The tests that every results store has to pass. A store declares where it differs."""

    keeps_nul = True
    """Whether text may hold a NUL character. Otherwise it is stored escaped."""
    keeps_bytes = True
    """Whether an item's JSON is returned byte for byte. Otherwise only its value is the same."""

    @pytest.fixture
    def results(self, connect: Connect) -> Results:
        return connect()

    # What is saved is what is read

    async def test_nothing_is_known_of_a_crawl_that_saved_nothing(self, results: Results) -> None:
        assert await everything(results) == ([], {}, [], *[[[]] * 5] * 3, [[]] * 3)

    async def test_an_item_comes_back_as_it_was(self, results: Results) -> None:
        item = some_item(fingerprint=some_fingerprint(3))
        await results.save(CRAWL, Batch(items=[item]))
        assert await all_items(results) == [item]
        assert await results.items_of(CRAWL, some_fingerprint(3)) == [item]
        assert await results.items_of(CRAWL, some_fingerprint(4)) == []

    @pytest.mark.parametrize(
        "fingerprint", [b"\0" * 8, b"\xff" * 8, b"\x7f" + b"\xff" * 7, b"\x80" + b"\0" * 7]
    )
    async def test_every_fingerprint_finds_its_own(
        self, results: Results, fingerprint: bytes
    ) -> None:
        item = some_item(fingerprint=fingerprint)
        page = some_page(fingerprint=fingerprint)
        rejected = some_rejected(fingerprint=fingerprint)
        await results.save(CRAWL, Batch([page], [item], [rejected]))
        assert await results.items_of(CRAWL, fingerprint) == [item]
        assert await results.pages_of(CRAWL, fingerprint) == [page]
        assert await results.rejected_of(CRAWL, fingerprint) == [rejected]

    async def test_tasks_are_found_by_the_address_they_were_tried_at(
        self, results: Results
    ) -> None:
        one, other = "https://a.example/x?[1]", "https://a.example/x?\U0001f41f"
        tries = [
            some_page(fingerprint=some_fingerprint(1), url=one),
            some_page(fingerprint=some_fingerprint(1), url=one, attempt=2),
            some_page(fingerprint=some_fingerprint(2), url=other),
            some_page(fingerprint=some_fingerprint(3), url=f"{one}2"),
        ]
        await results.save(CRAWL, Batch(tries))
        await results.save("another", Batch([some_page(fingerprint=some_fingerprint(4), url=one)]))
        assert await results.tasks_at(CRAWL, [one], 9) == [some_fingerprint(1)]
        both = {some_fingerprint(1), some_fingerprint(2)}
        assert set(await results.tasks_at(CRAWL, [one, other], 9)) == both
        assert len(await results.tasks_at(CRAWL, [one, other], 1)) == 1
        assert await results.tasks_at(CRAWL, ["https://a.example/\0"], 9) == []

    async def test_a_page_comes_back_as_it_was(self, results: Results) -> None:
        full = some_page(
            status=404,
            body_bytes=3_000_000_000,
            items=2,
            links=7,
            error="gone",
            parent="0123456789abcdef",
            digest=bytes(range(16)),
            simhash=-(2**63),
            archived="shop/pages/1.jsonl.gz#3",
            etag='W/"1-é"',
            last_modified="Sun, 15 Nov 2026 03:00:00 GMT",
            exit="dc-3f9a1c4207",
            block="challenge",
            started_at=1_700_000_000.123456,
        )
        bare = some_page(fingerprint=some_fingerprint(2))
        await results.save(CRAWL, Batch(pages=[full, bare]))
        assert await results.pages_of(CRAWL, full.fingerprint) == [full]
        assert await results.pages_of(CRAWL, bare.fingerprint) == [bare]

    async def test_tries_are_listed_oldest_first(self, results: Results) -> None:
        tries = [some_page(attempt=n, started_at=float(n), verdict="retry") for n in (1, 2, 3)]
        await results.save(CRAWL, Batch(pages=[tries[2], tries[0]]))
        await results.save(CRAWL, Batch(pages=[tries[1]]))
        assert await results.pages_of(CRAWL, some_fingerprint(1)) == tries

    async def test_tries_at_one_moment_are_all_kept(self, results: Results) -> None:
        tries = [some_page(), some_page(worker="w2"), some_page(attempt=2)]
        await results.save(CRAWL, Batch(pages=tries))
        assert len(await results.pages_of(CRAWL, some_fingerprint(1))) == 3

    async def test_rejected_items_come_back_in_order(self, results: Results) -> None:
        bad = [some_rejected(data=f"{n}", fingerprint=some_fingerprint(n)) for n in (2, 1, 3)]
        await results.save(CRAWL, Batch(rejected=bad[:2]))
        await results.save(CRAWL, Batch(rejected=bad[2:]))
        assert await all_rejected(results) == bad
        assert await results.rejected_of(CRAWL, some_fingerprint(1)) == [bad[1]]

    async def test_an_empty_batch_is_fine(self, results: Results) -> None:
        await results.save(CRAWL, Batch())
        assert await all_items(results) == []

    async def test_another_connection_sees_it_at_once(self, connect: Connect) -> None:
        writer, reader = connect(), connect()
        await writer.save(CRAWL, Batch([some_page()], [some_item()], [some_rejected()]))
        seen = await everything(reader)
        assert seen == await everything(writer)
        assert seen[0] == [some_item()]

    # Kinds, keys, order

    async def test_a_kind_can_be_asked_for_alone(self, results: Results) -> None:
        product, review = some_item(), some_item(kind="Review")
        await results.save(CRAWL, Batch(items=[product, review]))
        assert await all_items(results, kind="Review") == [review]
        assert await all_items(results, kind="Nothing") == []

    async def test_items_are_counted_by_kind(self, results: Results) -> None:
        products = [some_item(f"k{n}") for n in range(3)]
        await results.save(CRAWL, Batch(items=[*products, some_item(kind="Review")]))
        assert await results.count(CRAWL) == {"Product": 3, "Review": 1}

    async def test_items_stream_in_the_order_they_were_first_stored(self, results: Results) -> None:
        for key in ("c", "a", "b"):
            await results.save(CRAWL, Batch(items=[some_item(key)]))
        await results.save(CRAWL, Batch(items=[some_item("c", at=2.0)]))
        assert [item.key for item in await all_items(results)] == ["c", "a", "b"]

    async def test_keys_differ_in_case_and_spaces(self, results: Results) -> None:
        keys = ["a", "A", "a ", " a", "", "á", "a\u0301"]
        await results.save(CRAWL, Batch(items=[some_item(key) for key in keys]))
        assert [item.key for item in await all_items(results)] == keys

    async def test_items_come_by_kind_and_key_in_the_order_of_code_points(
        self, results: Results
    ) -> None:
        keys = ["b", "a", "B", "", "10", "9", "é", "z", "🐟", "\uffff", "a b", "a\x01"]
        kinds = ["Review", "Product", "product"]
        items = [some_item(key, kind=kind) for kind in kinds for key in keys]
        await results.save(CRAWL, Batch(items=items))
        await results.save("another", Batch(items=[some_item("c")]))
        found = [(item.kind, item.key) async for item in results.items_by_key(CRAWL)]
        assert found == sorted((item.kind, item.key) for item in items)
        of_kind = [item.key async for item in results.items_by_key(CRAWL, "Product")]
        assert of_kind == sorted(keys)

    async def test_items_by_key_come_in_parts(self, results: Results) -> None:
        """Many small items, and a few that together are larger than what is read at a time."""
        large = b'{"text":"' + b"x" * (STREAM_BYTES // 2) + b'"}'
        items = [some_item(f"k{n:04}", data=b"{}") for n in range(2_100)]
        for number in (5, 6, 7):
            items[number].data = large
        await results.save(CRAWL, Batch(items=items))
        found = [item async for item in results.items_by_key(CRAWL)]
        assert [item.key for item in found] == [item.key for item in items]
        part = await results.items_behind(CRAWL, ("Product", "k0004"), 100, None, None)
        assert [item.key for item in part[:2]] == ["k0005", "k0006"]
        assert len(part) <= 3

    async def test_items_as_they_were_at_a_moment(self, results: Results) -> None:
        for at, number in ((10.0, 1), (20.0, 2), (30.0, 2), (40.0, 3)):
            items = [some_item(at=at, data=b'{"n":%d}' % number)]
            items += [some_item("late", at=at, data=b"{}")] if at > 20 else []
            await results.save(CRAWL, Batch(items=items))

        async def then(at: float) -> dict[str, Any]:
            found = results.items_by_key(CRAWL, at=at)
            return {item.key: exact(item.data) async for item in found}

        assert await then(9.0) == {}
        assert await then(10.0) == await then(19.0) == {"k1": {"n": 1}}
        assert await then(20.0) == {"k1": {"n": 2}}
        assert await then(35.0) == {"k1": {"n": 2}, "late": {}}
        assert await then(99.0) == {"k1": {"n": 3}, "late": {}}

    async def test_without_readings_nobody_knows_what_an_item_said(self, results: Results) -> None:
        for at in (10.0, 20.0):
            batch = Batch(items=[some_item(at=at), some_item("same", at=at, data=b'{"n":1}')])
            batch.keep = Keep("off")
            await results.save(CRAWL, batch)
        found = {item.key: item.data async for item in results.items_by_key(CRAWL, at=15.0)}
        assert found.keys() == {"k1", "same"}
        assert found["k1"] == b"{}"
        assert exact(found["same"]) == {"n": 1}

    # Newest wins

    async def test_a_newer_scrape_replaces_all_of_the_older(self, results: Results) -> None:
        new = some_item(at=2.0, url="https://shop.example/new", fingerprint=some_fingerprint(2))
        await results.save(CRAWL, Batch(items=[some_item(at=1.0)]))
        await results.save(CRAWL, Batch(items=[new]))
        assert await all_items(results) == [new]
        assert await results.items_of(CRAWL, some_fingerprint(1)) == []
        assert await results.items_of(CRAWL, some_fingerprint(2)) == [new]

    async def test_an_older_scrape_changes_nothing(self, results: Results) -> None:
        new = some_item(at=2.0)
        await results.save(CRAWL, Batch(items=[new]))
        await results.save(CRAWL, Batch(items=[some_item(at=1.0)]))
        assert await all_items(results) == [new]

    async def test_at_the_same_moment_the_later_arrival_wins(self, results: Results) -> None:
        await results.save(CRAWL, Batch(items=[some_item(data=b'{"n":1}')]))
        await results.save(
            CRAWL, Batch(items=[some_item(data=b'{"n":2}'), some_item(data=b'{"n":3}')])
        )
        assert [exact(item.data) for item in await all_items(results)] == [{"n": 3}]

    @settings(
        deadline=None,
        max_examples=50,
        # Each example has a crawl of its own, and several backends run this on purpose.
        suppress_health_check=[
            HealthCheck.function_scoped_fixture,
            HealthCheck.differing_executors,
        ],
    )
    @given(
        arrivals=st.lists(st.tuples(st.sampled_from("abc"), _moments, st.booleans()), max_size=20)
    )
    async def test_the_newest_wins_in_any_order_of_arrival(
        self, results: Results, arrivals: list[tuple[str, float, bool]]
    ) -> None:
        crawl = f"order-{next(_numbers)}"
        scrapes = [
            some_item(key, at=at, fingerprint=some_fingerprint(number))
            for number, (key, at, _) in enumerate(arrivals)
        ]
        for batch in _split(scrapes, [cut for _, _, cut in arrivals]):
            await results.save(crawl, Batch(items=batch))

        newest: dict[str, StoredItem] = {}
        for scrape in scrapes:
            if scrape.key not in newest or scrape.scraped_at >= newest[scrape.key].scraped_at:
                newest[scrape.key] = scrape
        assert {item.key: item for item in await all_items(results, crawl)} == newest

    # Again, together, all or nothing

    async def test_saving_a_batch_twice_changes_nothing(self, results: Results) -> None:
        batch = Batch(
            pages=[some_page(), some_page(attempt=2, fingerprint=some_fingerprint(2))],
            items=[some_item("a", at=2.0), some_item("b"), some_item("a", at=1.0)],
            rejected=[some_rejected(), some_rejected(data="other")],
        )
        await results.save(CRAWL, batch)
        once = await everything(results)
        assert len(once[0]) == 2
        assert len(once[2]) == 2
        await results.save(CRAWL, batch)
        assert await everything(results) == once

    async def test_two_writers_of_the_same_keys_agree(self, connect: Connect) -> None:
        """Each writer has the newer item for half of the keys. They write at once, in opposite
        orders."""
        keys = [f"k{n}" for n in range(500)]
        odd = [some_item(key, at=float(n % 2), url="odd") for n, key in enumerate(keys)]
        even = [some_item(key, at=float(1 - n % 2), url="even") for n, key in enumerate(keys)]
        writers = [(connect(), odd), (connect(), even[::-1])]
        await asyncio.gather(*(_save_in_batches(store, items) for store, items in writers))

        stored = {item.key: item.url for item in await all_items(connect())}
        assert stored == {key: ("even", "odd")[n % 2] for n, key in enumerate(keys)}

    async def test_many_may_open_a_new_store_at_once(self, connect: Connect) -> None:
        stores = [connect() for _ in range(8)]
        saves = [s.save(CRAWL, Batch(items=[some_item(f"{n}")])) for n, s in enumerate(stores)]
        await asyncio.gather(*saves)
        assert await total(stores[0]) == 8

    @pytest.mark.parametrize("part", ["pages", "items", "rejected"])
    async def test_a_batch_with_a_bad_row_leaves_nothing(self, results: Results, part: str) -> None:
        await results.save(CRAWL, Batch([some_page()], [some_item()], [some_rejected()]))
        before = await everything(results)
        batch = Batch(
            pages=[some_page(attempt=2)],
            items=[some_item(at=2.0), some_item("new")],
            rejected=[some_rejected(data="new")],
        )
        bad = {
            "pages": some_page(attempt=3, url=NOT_A_TEXT),
            "items": some_item("bad", url=NOT_A_TEXT),
            "rejected": some_rejected(data="bad", url=NOT_A_TEXT),
        }
        getattr(batch, part).append(bad[part])
        with pytest.raises(StorageFailed):
            await results.save(CRAWL, batch)
        assert await everything(results) == before

        getattr(batch, part).pop()
        await results.save(CRAWL, batch)
        assert await total(results) == 2

    # Odd content

    @pytest.mark.parametrize(
        "text",
        [
            "žluťoučký 魚 🐟",
            "a\0b",
            "\0",
            "'; DROP TABLE items; --",
            "line\r\nbreak",
            "\ufeff\uffff",
        ],
    )
    async def test_any_text_is_kept(self, results: Results, text: str) -> None:
        batch = Batch(
            pages=[some_page(url=text, worker=text, verdict=text, error=text, parent=text)],
            items=[some_item(text, kind=text, url=text)],
            rejected=[some_rejected(kind=text, data=text, reason=text, url=text)],
        )
        await results.save(text, batch)
        shown = text if self.keeps_nul else text.replace("\0", "\\u0000")
        (page,) = await results.pages_of(text, some_fingerprint(1))
        assert {page.url, page.worker, page.verdict, page.error, page.parent} == {shown}
        (item,) = await all_items(results, text, kind=text)
        assert {item.kind, item.key, item.url} == {shown}
        assert await results.history(text, text, text) == [item]
        assert await results.count(text) == {shown: 1}
        (rejected,) = await all_rejected(results, text)
        assert {rejected.kind, rejected.data, rejected.reason, rejected.url} == {shown}

    async def test_keys_that_differ_after_a_nul_are_two(self, results: Results) -> None:
        await results.save(CRAWL, Batch(items=[some_item("a\0b"), some_item("a\0c")]))
        assert await total(results) == 2

    async def test_text_that_is_not_unicode_is_written_out(self, results: Results) -> None:
        """Such a text in a page must not make the whole batch fail for ever."""
        odd, written = f"a{LONE_SURROGATE}é", "a\\ud800é"
        batch = Batch(
            pages=[some_page(error=odd)],
            items=[some_item(odd, data=b"{}"), some_item("plain")],
            rejected=[some_rejected(data=odd, reason=odd)],
        )
        await results.save(CRAWL, batch)
        assert [page.error for page in await results.pages_of(CRAWL, some_fingerprint(1))] == [
            written
        ]
        assert [item.key for item in await all_items(results)] == [written, "plain"]
        assert [(r.data, r.reason) for r in await all_rejected(results)] == [(written, written)]

    @pytest.mark.parametrize(
        "data",
        [
            b"{}",
            b'{"n":123456789012345678901234567890123456789012345678901234567890}',
            b'{"x":0.1000000000000000055511151231257827,"y":1e400,"z":-1.50}',
            b'{"text":"nul \\u0000, lone \\ud800, pair \\ud83d\\udc1f, no escape \\\\u0000"}',
            '{"text":"🐟","b":1,"a":[2, 3]}'.encode(),
        ],
    )
    async def test_data_is_kept(self, results: Results, data: bytes) -> None:
        await results.save(CRAWL, Batch(items=[some_item(data=data)]))
        (item,) = await all_items(results)
        if self.keeps_bytes:
            assert item.data == data
        else:
            assert exact(item.data) == exact(_written_out(data))
        assert await results.history(CRAWL, "Product", "k1") == [item]

    async def test_fields_keep_their_order(self, results: Results) -> None:
        """The first item of a kind keeps the order of its fields; new fields come behind."""
        datas = [b'{"title":"b","sku":1,"a":2}', b'{"sku":1,"title":"b"}', b'{"title":"c","x":0}']
        for number, data in enumerate(datas):
            await results.save(CRAWL, Batch(items=[some_item(f"k{number}", data=data)]))
        names = [list(json.loads(item.data)) for item in await all_items(results)]
        assert names[0] == ["title", "sku", "a"]
        assert names[1] in (["sku", "title"], ["title", "sku"])
        assert names[2] == ["title", "x"]

    async def test_a_large_item_is_kept(self, results: Results) -> None:
        data = b'{"text":"' + b"x" * 5_000_000 + b'"}'
        await results.save(CRAWL, Batch(items=[some_item(data=data)]))
        (item,) = await all_items(results)
        assert exact(item.data) == exact(data)

    # History

    async def test_a_reading_that_says_the_same_is_not_kept(self, results: Results) -> None:
        for at, data in ((1.0, b'{"n":1}'), (2.0, b'{"n":1}'), (3.0, b'{"n":2}')):
            await results.save(CRAWL, Batch(items=[some_item(at=at, data=data)]))
        assert await readings(results) == [1.0, 3.0]
        first, last = await results.history(CRAWL, "Product", "k1")
        assert exact(first.data) == {"n": 1}
        assert exact(last.data) == {"n": 2}

    async def test_a_reading_of_what_was_before_is_kept(self, results: Results) -> None:
        for at, number in ((1.0, 1), (2.0, 2), (3.0, 1)):
            item = some_item(at=at, data=b'{"n":%d}' % number)
            await results.save(CRAWL, Batch(items=[item]))
        assert await readings(results) == [1.0, 2.0, 3.0]

    async def test_readings_in_one_batch_are_all_looked_at(self, results: Results) -> None:
        batch = Batch(
            items=[some_item(at=at, data=b'{"n":%d}' % n) for at, n in ((2, 5), (1, 4), (3, 6))]
        )
        await results.save(CRAWL, batch)
        assert await readings(results) == [1.0, 2.0, 3.0]
        await results.save(CRAWL, batch)
        assert await readings(results) == [1.0, 2.0, 3.0]

    async def test_a_late_reading_goes_to_the_history_alone(self, results: Results) -> None:
        await results.save(CRAWL, Batch(items=[some_item(at=2.0)]))
        await results.save(CRAWL, Batch(items=[some_item(at=1.0)]))
        assert await readings(results) == [1.0, 2.0]
        assert [item.scraped_at for item in await all_items(results)] == [2.0]

    async def test_the_same_moment_read_again_takes_its_place(self, results: Results) -> None:
        for data in (b'{"n":1}', b'{"n":2}'):
            await results.save(CRAWL, Batch(items=[some_item(data=data)]))
        (reading,) = await results.history(CRAWL, "Product", "k1")
        assert exact(reading.data) == {"n": 2}

    async def test_an_older_moment_can_be_corrected_too(self, results: Results) -> None:
        """This happens when archived pages are parsed again by a better spider."""
        for at, number in ((1.0, 0), (2.0, 9), (1.0, 9), (2.0, 9)):
            await results.save(CRAWL, Batch(items=[some_item(at=at, data=b'{"n":%d}' % number)]))
        kept = await results.history(CRAWL, "Product", "k1")
        assert [(item.scraped_at, exact(item.data)) for item in kept] == [
            (1.0, {"n": 9}),
            (2.0, {"n": 9}),
        ]

    async def test_the_order_of_fields_is_no_change(self, results: Results) -> None:
        for at, data in ((1.0, b'{"a":1,"b":[2, 3]}'), (2.0, b'{"b":[2, 3],"a":1}')):
            await results.save(CRAWL, Batch(items=[some_item(at=at, data=data)]))
        assert await readings(results) == [1.0]

    async def test_every_reading_is_kept_where_that_is_wanted(self, results: Results) -> None:
        for at in (1.0, 3.0, 2.0):
            batch = Batch(items=[some_item(at=at, data=b"{}")], keep=Keep("always"))
            await results.save(CRAWL, batch)
        assert await readings(results) == [1.0, 2.0, 3.0]

    async def test_no_reading_is_kept_where_none_is_wanted(self, results: Results) -> None:
        await results.save(CRAWL, Batch(items=[some_item()], keep=Keep("off")))
        assert await readings(results) == []
        assert await total(results) == 1

    async def test_a_young_item_is_left_alone(self, results: Results) -> None:
        keep = Keep(refresh_s=60.0)
        for at in (100.0, 159.0, 50.0, 161.0, 200.0):
            await results.save(CRAWL, Batch(items=[some_item(at=at)], keep=keep))
        assert [item.scraped_at for item in await all_items(results)] == [161.0]
        assert await readings(results) == [100.0, 161.0]

    async def test_a_young_item_may_be_corrected(self, results: Results) -> None:
        keep = Keep(refresh_s=60.0)
        for data in (b'{"n":1}', b'{"n":2}'):
            await results.save(CRAWL, Batch(items=[some_item(data=data)], keep=keep))
        assert [exact(item.data) for item in await all_items(results)] == [{"n": 2}]

    async def test_items_since_a_time(self, results: Results) -> None:
        await results.save(CRAWL, Batch(items=[some_item(f"k{n}", at=float(n)) for n in range(4)]))
        assert await wanted_keys(results, Wanted(since=2.0)) == ["k2", "k3"]
        assert await wanted_keys(results, Wanted(since=2.0, kind="Review")) == []

    async def test_items_that_changed(self, results: Results) -> None:
        for at, numbers in ((1.0, (1, 1, 1)), (2.0, (1, 2, 1)), (3.0, (1, 2, 2))):
            items = [some_item(f"k{k}", at=at, data=b'{"n":%d}' % n) for k, n in enumerate(numbers)]
            await results.save(CRAWL, Batch(items=items))
        assert await wanted_keys(results, Wanted(changed=True)) == ["k1", "k2"]
        assert await wanted_keys(results, Wanted(changed=True, since=2.5)) == ["k2"]

    async def test_items_that_changed_within_a_batch(self, results: Results) -> None:
        both = [some_item(at=at, data=b'{"n":%d}' % n) for at, n in ((1.0, 1), (2.0, 2))]
        same = [some_item("same", at=at, data=b"{}") for at in (1.0, 2.0)]
        orders = ((1.0, b'{"a":1,"b":2}'), (2.0, b'{"b":2,"a":1}'))
        turned = [some_item("turned", at=at, data=data) for at, data in orders]
        await results.save(CRAWL, Batch(items=[*both, *same, *turned]))
        assert await wanted_keys(results, Wanted(changed=True)) == ["k1"]

    async def test_old_readings_and_pages_can_be_removed(self, results: Results) -> None:
        """The times are in different months, because some stores prune whole months."""
        days = [86_400.0 * day for day in (10, 50, 100)]
        pages = [some_page(started_at=at) for at in days]
        for at in days:
            await results.save(CRAWL, Batch(items=[some_item(at=at)]))
        await results.save(CRAWL, Batch(pages=pages))
        february = 86_400.0 * 31
        would_go = await results.prune(february, dry_run=True)
        assert (would_go.observations, would_go.pages) == (1, 1)
        assert await readings(results) == days
        gone = await results.prune(february)
        assert (gone.observations, gone.pages) == (1, 1)
        assert await readings(results) == days[1:]
        assert await results.pages_of(CRAWL, some_fingerprint(1)) == pages[1:]
        assert await total(results) == 1

    # Pages that are alike

    async def test_signatures_are_those_of_pages_that_have_one(self, results: Results) -> None:
        values = [(n, simhash) for n, simhash in enumerate((5, None, -7, 0))]
        pages = [some_page(fingerprint=some_fingerprint(n), simhash=s) for n, s in values]
        await results.save(CRAWL, Batch(pages=pages))
        found = {signature async for signature in results.signatures(CRAWL)}
        assert found == {(some_fingerprint(n), s) for n, s in values if s is not None}

    async def test_what_is_nearly_the_same_can_be_noted(self, results: Results) -> None:
        one, two, three = (some_fingerprint(n) for n in (1, 2, 3))
        await results.mark_near(CRAWL, [NearPage(two, one, 3), NearPage(three, one, 1)])
        assert await results.near_of(CRAWL, two) == NearPage(two, one, 3)
        assert await results.near_of(CRAWL, one) is None
        assert await results.near_of("another", two) is None
        await results.mark_near(CRAWL, [NearPage(two, three, 0)])
        assert await results.near_of(CRAWL, two) == NearPage(two, three, 0)

    # Crawls beside each other

    async def test_crawls_do_not_see_each_other(self, results: Results) -> None:
        await results.save("a", Batch([some_page()], [some_item()], [some_rejected()]))
        other = some_item(at=0.5)
        await results.save("b", Batch(items=[other]))
        assert await everything(results, "b") == (
            [other],
            {"Product": 1},
            [],
            [[]] * 5,
            [[], [other], [], [], []],
            [[]] * 5,
            [[other], [], []],
        )

    async def test_forgetting_a_crawl_leaves_the_others(self, results: Results) -> None:
        batch = Batch([some_page()], [some_item()], [some_rejected()])
        await results.save("a", batch)
        await results.save("b", batch)
        kept = await everything(results, "b")
        await results.forget("a")
        assert await everything(results, "a") == await everything(results, "never was")
        assert await everything(results, "b") == kept

    async def test_how_a_crawl_ran_is_noted(self, results: Results) -> None:
        assert await results.note_of(CRAWL) is None
        await results.save(CRAWL, Batch(items=[some_item()]))
        assert await results.note_of(CRAWL) is None
        for note in (RunNote("redis://one"), RunNote("redis://b", ["a.py:B"], "file:///", "a")):
            await results.note_run(CRAWL, note)
            assert await results.note_of(CRAWL) == note
        assert await results.note_of("another") is None

    async def test_the_note_is_forgotten_too(self, results: Results) -> None:
        await results.note_run(CRAWL, RunNote("redis://one"))
        await results.mark_near(CRAWL, [NearPage(some_fingerprint(1), some_fingerprint(2), 0)])
        await results.forget(CRAWL)
        assert await results.note_of(CRAWL) is None
        assert await results.near_of(CRAWL, some_fingerprint(1)) is None

    async def test_a_forgotten_crawl_is_empty_when_it_starts_again(self, results: Results) -> None:
        await results.save(CRAWL, Batch([some_page()], [some_item()], [some_rejected()]))
        await results.forget(CRAWL)
        await results.save(CRAWL, Batch())
        assert await everything(results) == await everything(results, "never was")

    async def test_a_writer_need_not_know_that_the_crawl_was_forgotten(
        self, connect: Connect
    ) -> None:
        writer, other = connect(), connect()
        await writer.save(CRAWL, Batch(items=[some_item(at=2.0)]))
        await other.forget(CRAWL)
        await other.save("another", Batch())
        older = some_item(at=1.0)
        await writer.save(CRAWL, Batch(items=[older]))
        assert await all_items(other) == [older]
        assert await all_items(other, "another") == []

    async def test_forgetting_what_never_was_is_fine(self, results: Results) -> None:
        await results.forget("never was")

    # Streams

    async def test_a_stream_goes_on_while_others_write(self, connect: Connect) -> None:
        """What was there at the start is returned exactly once, in order. Writers do not wait."""
        reader, writer = connect(), connect()
        keys = [f"k{n}" for n in range(2_500)]
        await writer.save(CRAWL, Batch(items=[some_item(key) for key in keys]))
        seen: list[StoredItem] = []
        async for item in reader.items(CRAWL):
            if len(seen) % 500 == 0:
                late = [some_item(f"late{len(seen)}"), some_item(keys[-1], at=2.0 + len(seen))]
                await writer.save(CRAWL, Batch(items=late))
            seen.append(item)
        assert [item.key for item in seen if not item.key.startswith("late")] == keys
        assert len(seen) == len({item.key for item in seen})

    async def test_a_stream_goes_on_from_a_place(self, results: Results) -> None:
        kinds = ["odd" if n % 2 else "even" for n in range(50)]
        items = [some_item(f"k{n}", kind=kind) for n, kind in enumerate(kinds)]
        await results.save(CRAWL, Batch(items=items))
        places = [place async for place, _ in results.items_from(CRAWL, 0)]
        assert places == sorted(set(places))
        await results.save(CRAWL, Batch(items=[some_item("k30", kind="even", at=9.0)]))
        for at in (0, 17, 49):
            found = [item.key async for _, item in results.items_from(CRAWL, places[at])]
            assert found == [f"k{n}" for n in range(at + 1, 50)]
        odd = Wanted(kind="odd")
        found = [item.key async for _, item in results.items_from(CRAWL, places[40], odd)]
        assert found == ["k41", "k43", "k45", "k47", "k49"]

    async def test_a_stream_may_be_left_early(self, results: Results) -> None:
        await results.save(CRAWL, Batch(items=[some_item(f"k{n}") for n in range(10)]))
        stream = results.items(CRAWL)
        assert (await anext(stream)).key == "k0"
        await results.save(CRAWL, Batch(items=[some_item("k10")]))
        await results.forget(CRAWL)
        assert await all_items(results) == []

    async def test_a_stream_of_large_items_needs_little_memory(self, results: Results) -> None:
        megabyte = b"x" * 1_000_000
        for n in range(60):
            data = b'{"text":"' + megabyte + b'"}'
            await results.save(CRAWL, Batch(items=[some_item(f"k{n}", data=data)]))
        tracemalloc.start()
        try:
            count = 0
            async for _ in results.items(CRAWL):
                count += 1
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert count == 60
        assert peak < 30_000_000


def exact(data: bytes) -> dict[str, Any]:
    """An item's fields, with the exact values of numbers."""
    return json.loads(data, parse_float=Decimal)  # type: ignore[no-any-return]


def _written_out(data: bytes) -> bytes:
    """The JSON as stored by a store that keeps neither NUL nor lone surrogates."""
    return data.replace(b"nul \\u0000, lone \\ud800", b"nul \\\\u0000, lone \\\\ud800")


async def _save_in_batches(results: Results, items: Sequence[StoredItem]) -> None:
    for start in range(0, len(items), 50):
        await results.save(CRAWL, Batch(items=list(items[start : start + 50])))


def _split(items: Sequence[StoredItem], cuts: Sequence[bool]) -> list[list[StoredItem]]:
    """The items in batches: a new one begins wherever there is a cut."""
    batches: list[list[StoredItem]] = [[]]
    for item, cut in zip(items, cuts, strict=True):
        if cut:
            batches.append([])
        batches[-1].append(item)
    return batches
