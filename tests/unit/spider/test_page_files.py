"""`page.file` and `page.files`: what they take, and what handlers give with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from multidict import CIMultiDict

from shoal import Item, Page, Spider
from shoal.core.files import refs_in
from shoal.core.task import Task
from shoal.spider.files import ItemFiles
from shoal.spider.reading import Reading, read

HTML = b"""<img class=a src=/1.png><img class=b src="/2.png"><img src=""><img>
<a class=pdf href=/m.pdf></a><img class=data src="data:image/png;base64,AA">"""


class Pot(Item, key="sku"):
    sku: str
    price: float = 1.0


def page_of(html: bytes = HTML, **fields: Any) -> Page:
    url = "https://shop.example/p/1"
    return Page(
        url=url,
        status=200,
        headers=CIMultiDict({"Content-Type": "text/html"}),
        body=html,
        task=Task(url=url, **fields),
        fingerprint=b"fingerpr",
    )


async def reading_of(handler: Callable[[Any, Page], Any], **hooks: Any) -> Reading:
    spider = type("OfPots", (Spider,), {"parse": handler, **hooks})()
    page = page_of()
    page.max_links = 3
    reading = await read(spider, page, 5.0)
    if reading.error is not None:
        raise reading.error
    return reading


def paths(tasks: list[Task]) -> list[str]:
    return [task.url.removeprefix("https://shop.example") for task in tasks]


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("/1.png", ["/1.png"]),
        (" /1.png\n", ["/1.png"]),
        ("https://cdn.example/a b.png#x", ["https://cdn.example/a%20b.png"]),
        (None, []),
        ("", []),
    ],
)
def test_a_file_at_an_address(target: str | None, expected: list[str]) -> None:
    assert paths(page_of().file(target, item=Pot("a")).tasks) == expected


def test_files_of_selections() -> None:
    page, item = page_of(), Pot("a")
    assert paths(page.file(page.css("img"), item=item).tasks) == ["/1.png"]
    assert paths(page.file(page.css("img.none"), item=item).tasks) == []
    assert paths(page.file(page.css("a.pdf"), item=item).tasks) == ["/m.pdf"]
    found = page.files("img", item=item)
    assert paths(found.tasks) == ["/1.png", "/2.png"]
    assert found.addresses == ["data:image/png;base64,AA"]
    assert paths(page.files(["/3.png", page.css("img.b")], item=item).tasks) == ["/3.png", "/2.png"]


def test_a_file_is_a_child_of_its_page_that_goes_before_others() -> None:
    page = page_of(depth=4, priority=10, session="shop")
    (task,) = page.file("/1.png", item=Pot("a"), headers={"Referer": page.url}).tasks
    assert (task.depth, task.priority, task.session) == (4, 11, "shop")
    assert (task.parent, task.headers) == (page.fingerprint.hex(), {"Referer": page.url})
    assert page.file("/1.png", item=Pot("a"), priority=-1).tasks[0].priority == -1


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"item": None}, TypeError, "item= must be the item"),
        ({"item": "sku"}, TypeError, "item= must be the item"),
        ({"item": {}, "field": ""}, ValueError, "a field must be text"),
        ({"item": {}, "headers": {"X": 5}}, ValueError, "headers: "),
        ({"item": {}, "session": "x", "proxy_pool": "y"}, ValueError, "proxy_pool='y'"),
    ],
)
def test_mistakes_are_named(options: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        page_of().file("/1.png", **options)


async def test_an_item_goes_with_its_files() -> None:
    def parse(self: Any, page: Page) -> Any:
        pot = Pot("a")
        yield page.file("/1.png", item=pot, field="image")
        yield page.files(["/1.png", "/2.png"], item=pot)
        yield Pot("b")

    reading = await reading_of(parse)
    assert [item.key for item in reading.items] == ["b", "a"]
    assert paths(reading.files) == ["/1.png", "/2.png"], "each is fetched once"
    refs = refs_in(reading.items[1].data)
    assert [(ref.field, ref.url[-6:]) for ref in refs] == [
        ("image", "/1.png"),
        ("files", "/1.png"),
        ("files", "/2.png"),
    ]
    assert refs[0].id == refs[1].id
    assert b"_files" not in reading.items[0].data


async def test_an_item_that_is_yielded_as_well_is_one_item() -> None:
    def parse(self: Any, page: Page) -> Any:
        pot = Pot("a")
        yield page.file("/1.png", item=pot)
        yield pot
        yield page.file(None, item=pot)

    reading = await reading_of(parse)
    assert [len(refs_in(item.data)) for item in reading.items] == [1]


async def test_an_item_without_a_key_is_known_by_what_it_says_alone() -> None:
    def parse(self: Any, page: Page) -> Any:
        yield page.file("/1.png", item={"note": 1})
        yield {"note": 1}

    with_file, without = sorted((await reading_of(parse)).items, key=lambda item: -len(item.data))
    assert with_file.key == without.key


async def test_what_no_item_has_is_not_fetched() -> None:
    def parse(self: Any, page: Page) -> Any:
        yield page.file("/1.png", item=Pot("a", price="free"))  # type: ignore[arg-type]
        yield page.file("/2.png", item=Pot("sold"))

    def item(self: Any, item: Any, page: Page) -> Any:
        return None if item.sku == "sold" else item

    reading = await reading_of(parse, item=item)
    assert (reading.items, len(reading.rejected), reading.files) == ([], 1, [])


async def test_what_a_hook_makes_of_an_item_has_its_files() -> None:
    def parse(self: Any, page: Page) -> Any:
        yield Pot("b")
        yield page.file("/1.png", item=Pot("a"))

    def item(self: Any, item: Any, page: Page) -> Any:
        return [Pot(item.sku * 2), Pot(item.sku * 3)]

    reading = await reading_of(parse, item=item)
    assert {item.key: len(refs_in(item.data)) for item in reading.items} == {
        **{"bb": 0, "bbb": 0},
        **{"aa": 1, "aaa": 1},
    }


async def test_of_too_many_files_the_rest_is_told_of() -> None:
    def parse(self: Any, page: Page) -> Any:
        pot = Pot("a")
        yield [page.file(f"/{n}.png", item=pot) for n in range(5)]

    reading = await reading_of(parse)
    assert len(reading.files) == 3
    refs = refs_in(reading.items[0].data)
    refused = {file.fingerprint.hex(): file for file in reading.no_files}
    assert [ref.id in refused for ref in refs] == [False] * 3 + [True] * 2
    assert {file.error for file in refused.values()} == {
        "more than 3 files of one page (max_links_per_page)"
    }


async def test_far_too_many_files_cost_no_more_than_too_many() -> None:
    def parse(self: Any, page: Page) -> Any:
        given = page.files(["", *(f"/{n}.png" for n in range(5_000))], item=Pot("a"))
        assert (len(given.tasks), page.links_cut) == (2, 4_998)
        yield given

    reading = await reading_of(parse)
    assert [file.url for file in reading.no_files] == ["/2.png"], "the item is not complete"
    assert len(refs_in(reading.items[0].data)) == 3


async def test_addresses_that_lead_nowhere_cost_the_page_nothing() -> None:
    def parse(self: Any, page: Page) -> Any:
        yield page.files("img.data", item=Pot("a"))

    reading = await reading_of(parse)
    assert (reading.files, [file.error for file in reading.no_files]) == ([], ["no web address"])
    assert msgspec.json.decode(reading.items[0].data)["sku"] == "a"


def test_it_shows_what_it_is() -> None:
    assert repr(ItemFiles(Pot("a"), "image")) == "<ItemFiles image: 0 of Pot>"
