"""What a results store must do for a crawl with a previous one. Goes with ResultsContract."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from contract.results_suite import (
    Connect,
    all_items,
    readings,
    some_fingerprint,
    some_item,
    some_page,
    some_rejected,
)
from shoal.core.records import StoredItem
from shoal.results.port import Batch, Keep, KnownPage, Results, RunNote, Wanted

MONDAY, TUESDAY, WEDNESDAY = "shop-monday", "shop-tuesday", "shop-wednesday"
PAGE = some_fingerprint(1)
ALL = Wanted(gone=True)


async def gone_of(results: Results, crawl: str) -> dict[str, float | None]:
    """The time at which each item of a crawl was gone, in the order of the listing."""
    return {item.key: item.gone_at async for item in results.items(crawl, ALL)}


async def known(results: Results, crawl: str) -> KnownPage | None:
    """What the store knows about the page."""
    found = await results.known_pages(crawl, [PAGE])
    assert found.keys() <= {PAGE}
    return found.get(PAGE)


class RecrawlContract:
    """Known pages, and items that are gone."""

    # Known pages

    async def test_nothing_is_known_of_a_page_that_was_never_read(self, results: Results) -> None:
        assert await known(results, MONDAY) is None
        failed = [
            some_page(verdict="retry", status=500, started_at=1.0),
            some_page(verdict="dropped", status=404, started_at=2.0),
            some_page(verdict="done", status=301, started_at=3.0),
            some_page(verdict="dead", status=200, started_at=4.0),
            some_page(verdict="dead", status=None, started_at=5.0),
        ]
        await results.save(MONDAY, Batch(pages=failed))
        assert await known(results, MONDAY) is None

    async def test_a_page_is_known_with_its_items(self, results: Results) -> None:
        page = some_page(
            status=200, etag='W/"1"', last_modified="then", items=2, digest=b"d" * 16, simhash=-1
        )
        other = some_item("other", fingerprint=some_fingerprint(2))
        items = [some_item("b"), some_item("a", kind="Review")]
        await results.save(MONDAY, Batch([page], [*items, other]))
        assert await known(results, MONDAY) == KnownPage(
            etag='W/"1"',
            last_modified="then",
            read=2,
            digest=b"d" * 16,
            simhash=-1,
            items=items,
        )
        assert await known(results, TUESDAY) is None

    async def test_the_last_visit_that_succeeded_is_the_one_that_is_known(
        self, results: Results
    ) -> None:
        tries = [
            some_page(status=200, etag="first", items=1, started_at=1.0),
            some_page(status=304, etag="second", items=2, started_at=3.0),
            some_page(status=200, etag="between", started_at=2.0),
            some_page(status=500, etag="failed", verdict="retry", started_at=4.0),
        ]
        await results.save(MONDAY, Batch(pages=tries))
        page = await known(results, MONDAY)
        assert page == KnownPage(etag="second", read=2)

    async def test_a_page_that_ever_led_on_comes_without_items(self, results: Results) -> None:
        tries = [some_page(status=200, links=n, started_at=5.0 - n) for n in (0, 3, 1)]
        await results.save(MONDAY, Batch(tries, [some_item()]))
        assert await known(results, MONDAY) == KnownPage(links=3)

    async def test_what_was_rejected_is_known(self, results: Results) -> None:
        bad = [some_rejected(data="1"), some_rejected(data="2")]
        await results.save(MONDAY, Batch([some_page(status=200)], [], bad))
        page = await known(results, MONDAY)
        assert page == KnownPage(rejected=2)

    async def test_a_known_item_keeps_the_order_of_its_fields(self, results: Results) -> None:
        item = some_item(data=b'{"title":"b","sku":1,"a":2}')
        await results.save(MONDAY, Batch([some_page(status=200)], [item]))
        page = await known(results, MONDAY)
        assert page is not None
        assert page.items == [item]

    async def test_many_pages_can_be_asked_for_at_once(self, results: Results) -> None:
        """Each page has its own items; some pages were never fetched."""
        prints = [some_fingerprint(n) for n in range(60)]
        pages = [some_page(fingerprint=f, status=200, etag=f.hex()) for f in prints[::2]]
        items = [some_item(f"{n} {f.hex()}", fingerprint=f) for n in range(3) for f in prints[::2]]
        await results.save(MONDAY, Batch(pages, items))
        found = await results.known_pages(MONDAY, prints)
        assert {f: page.etag for f, page in found.items()} == {f: f.hex() for f in prints[::2]}
        for fingerprint, page in found.items():
            assert page.items == [item for item in items if item.fingerprint == fingerprint]
        assert await results.known_pages(MONDAY, []) == {}

    # Items that are gone

    async def test_items_that_were_not_found_are_gone(self, results: Results) -> None:
        old = [some_item(key) for key in ("stays", "goes", "goes too")]
        await results.save(MONDAY, Batch(items=old))
        await results.save(TUESDAY, Batch(items=[some_item("new"), some_item("stays", at=2.0)]))
        assert await results.mark_gone(TUESDAY, MONDAY, 9.5) == 2
        assert await gone_of(results, TUESDAY) == {
            "new": None,
            "stays": None,
            "goes": 9.5,
            "goes too": 9.5,
        }
        gone = [item async for item in results.items(TUESDAY, ALL) if item.gone_at]
        assert gone == [replace(item, gone_at=9.5) for item in old[1:]]
        assert await all_items(results, MONDAY) == old

    async def test_what_is_gone_is_not_counted_nor_listed(self, results: Results) -> None:
        old = [some_item("a"), some_item("b"), some_item("r", kind="Review")]
        await results.save(MONDAY, Batch([some_page(status=200)], old))
        await results.save(TUESDAY, Batch([some_page(status=200)], [some_item("a", at=2.0)]))
        await results.mark_gone(TUESDAY, MONDAY, 9.0)
        assert await results.count(TUESDAY) == {"Product": 1}
        assert [item.key for item in await all_items(results, TUESDAY)] == ["a"]
        page = await known(results, TUESDAY)
        assert page is not None
        assert [item.key for item in page.items] == ["a"]
        told = {item.key: item.gone_at for item in await results.items_of(TUESDAY, PAGE)}
        assert told == {"a": None, "b": 9.0, "r": 9.0}

    async def test_marking_again_changes_nothing(self, connect: Connect) -> None:
        """The same holds if several processes mark at once."""
        stores = [connect() for _ in range(3)]
        await stores[0].save(MONDAY, Batch(items=[some_item(f"k{n}") for n in range(50)]))
        marking = [store.mark_gone(TUESDAY, MONDAY, 9.0) for store in stores]
        assert await asyncio.gather(*marking) == [50, 50, 50]
        assert await stores[0].mark_gone(TUESDAY, MONDAY, 10.0) == 50
        assert set((await gone_of(stores[0], TUESDAY)).values()) == {9.0}

    async def test_what_is_gone_was_there_before(self, results: Results) -> None:
        await results.save(MONDAY, Batch(items=[some_item("a"), some_item("b")]))
        await results.save(TUESDAY, Batch(items=[some_item("b", at=2.0)]))
        await results.mark_gone(TUESDAY, MONDAY, 9.0)
        now = [item.key async for item in results.items_by_key(TUESDAY)]
        then = [item.key async for item in results.items_by_key(TUESDAY, at=8.0)]
        assert (now, then) == (["b"], ["a", "b"])

    async def test_who_was_gone_before_keeps_the_time(self, results: Results) -> None:
        await results.save(MONDAY, Batch(items=[some_item("a"), some_item("b")]))
        await results.save(TUESDAY, Batch(items=[some_item("b", at=2.0)]))
        assert await results.mark_gone(TUESDAY, MONDAY, 9.0) == 1
        assert await results.mark_gone(WEDNESDAY, TUESDAY, 10.0) == 1
        assert await gone_of(results, WEDNESDAY) == {"a": 9.0, "b": 10.0}

    async def test_a_page_that_gave_something_bad_keeps_its_items(self, results: Results) -> None:
        """A rejected item may be any of the page's, so none of these counts as gone."""
        old = [some_item("a"), some_item("b", fingerprint=some_fingerprint(2))]
        await results.save(MONDAY, Batch(items=old))
        await results.save(TUESDAY, Batch(rejected=[some_rejected()]))
        assert await results.mark_gone(TUESDAY, MONDAY, 9.0) == 1
        assert await gone_of(results, TUESDAY) == {"b": 9.0}

    async def test_there_need_be_no_earlier_crawl(self, results: Results) -> None:
        await results.save(TUESDAY, Batch(items=[some_item()]))
        assert await results.mark_gone(TUESDAY, "never was", 9.0) == 0
        assert await gone_of(results, TUESDAY) == {"k1": None}

    @pytest.mark.parametrize(
        ("again", "keep"),
        [
            (some_item(at=20.0, data=b'{"n":1}'), Keep()),
            (some_item(at=20.0, data=b'{"n":2}'), Keep(refresh_s=3600.0)),
            (some_item(at=0.5, data=b'{"n":1}'), Keep()),
        ],
        ids=["the same", "still young", "older than what was copied"],
    )
    async def test_an_item_that_is_back_is_as_new(
        self, results: Results, again: StoredItem, keep: Keep
    ) -> None:
        await results.save(MONDAY, Batch(items=[some_item(data=b'{"n":0}')]))
        await results.save(MONDAY, Batch(items=[some_item(at=2.0, data=b'{"n":1}')]))
        await results.mark_gone(TUESDAY, MONDAY, 9.0)
        assert await readings(results, crawl=TUESDAY) == []
        await results.save(TUESDAY, Batch(items=[again], keep=keep))
        assert await gone_of(results, TUESDAY) == {"k1": None}
        assert await all_items(results, TUESDAY) == [again]
        assert await results.count(TUESDAY) == {"Product": 1}
        assert await readings(results, crawl=TUESDAY) == [again.scraped_at]
        assert [i async for i in results.items(TUESDAY, Wanted(changed=True))] == []

    async def test_what_is_gone_since_a_time(self, results: Results) -> None:
        await results.save(MONDAY, Batch(items=[some_item("a"), some_item("b")]))
        await results.mark_gone(TUESDAY, MONDAY, 9.0)

        async def keys(**wanted: Any) -> list[str]:
            return [item.key async for item in results.items(TUESDAY, Wanted(gone=True, **wanted))]

        assert await keys(since=9.0) == ["a", "b"]
        assert await keys(since=9.5) == await keys(kind="Review") == []
        assert await keys(changed=True) == []

    async def test_what_changed_since_the_earlier_crawl(self, results: Results) -> None:
        """Changed are items whose content differs from that in the crawl before. New items are
        not."""

        async def read(crawl: str, at: float, previous: str = "", **numbers: int) -> None:
            items = [some_item(key, at=at, data=b'{"n":%d}' % n) for key, n in numbers.items()]
            await results.note_run(crawl, RunNote("redis://one", previous=previous))
            await results.save(crawl, Batch(items=items))

        async def changed(crawl: str, **wanted: Any) -> list[str]:
            return [item.key async for item in results.items(crawl, Wanted(changed=True, **wanted))]

        await read(MONDAY, 1.0, same=1, other=1, away=1, back=1)
        await read(TUESDAY, 2.0, MONDAY, same=1, other=2, back=2, new=1)
        assert await changed(TUESDAY) == ["other", "back"]
        assert await changed(TUESDAY, kind="Review") == await changed(TUESDAY, since=2.5) == []
        assert await changed(TUESDAY, since=1.5) == ["other", "back"]
        assert await changed(TUESDAY, gone=True) == ["other", "back"]
        await results.mark_gone(TUESDAY, MONDAY, 3.0)
        assert await changed(TUESDAY, gone=True) == ["other", "back"]
        await read(WEDNESDAY, 4.0, TUESDAY, same=1, other=2, away=2, back=1)
        assert await changed(WEDNESDAY) == ["back"], "what was gone is as new"
        await read(WEDNESDAY, 5.0, TUESDAY, same=2)
        assert await changed(WEDNESDAY, since=4.5) == ["same"]
        await results.forget(TUESDAY)
        assert await changed(WEDNESDAY) == ["same"], "only in its own time"

    async def test_a_crawl_with_gone_items_is_forgotten(self, results: Results) -> None:
        await results.save(MONDAY, Batch(items=[some_item()]))
        await results.mark_gone(TUESDAY, MONDAY, 9.0)
        await results.forget(TUESDAY)
        assert await gone_of(results, TUESDAY) == {}
        assert await gone_of(results, MONDAY) == {"k1": None}
