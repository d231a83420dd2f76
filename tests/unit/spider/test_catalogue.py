"""Catalogues: how they are declared, and what their pages say of the last one."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.errors import ConfigError
from shoal.spider.catalogue import KEY, Catalogue
from shoal.spider.page import Page
from shoal.spider.spider import Spider
from shoal.spider.starting import seeds
from support.catalogues import page_of

URL = "https://shop.example/catalog?page={page}"
LAST = Catalogue(URL, last="a.last")
TOTAL = Catalogue(URL, total="p.count")
ITEMS = Catalogue(URL, items="li")


# Declaring one


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"url": "https://shop.example/catalog", "items": "li"}, "has no {page}"),
        ({"url": 5, "items": "li"}, "has no {page}"),
        ({"url": "shop/{page}", "items": "li"}, "not a URL"),
        ({"url": "https://shop.example/#{page}", "items": "li"}, "the same address"),
        ({}, "give exactly one of last, total and items"),
        ({"last": "a", "items": "li"}, "give exactly one of last, total and items"),
        ({"last": "a["}, "not a CSS selector: 'a['"),
        ({"items": 5}, "must be CSS selectors"),
        ({"items": "li", "limit": 0}, "limit must be a whole number from 1 to 2147483647, not 0"),
        ({"items": "li", "limit": "5"}, "whole number from 1 to 2147483647, not '5'"),
        ({"items": "li", "first": -1}, "first must be a whole number from 0"),
        ({"items": "li", "priority": 2**40}, "priority must be a whole number"),
        ({"total": "p", "per_page": 0}, "per_page must be a whole number from 1"),
        ({"items": "li", "per_page": 20}, "per_page needs total"),
        ({"items": "li", "handler": print}, "the handler must be the name of a method"),
    ],
)
def test_wrong_use_is_one_line(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as raised:
        Catalogue(**{"url": URL, **options})
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("wrong", [5, "https://shop.example/{page}", [URL], None])
def test_a_spider_with_something_else_is_not_made(wrong: Any) -> None:
    with pytest.raises(ConfigError, match=r"Shop\.catalogue must be a Catalogue or a list of them"):
        type("Shop", (Spider,), {"catalogue": wrong})


async def test_the_first_pages_are_the_first_seeds() -> None:
    class Shop(Spider):
        catalogue = (LAST, Catalogue(URL, items="li", first=0, handler="listing", priority=-3))
        start_urls = ("https://shop.example/about",)

        def listing(self, page: Page) -> None: ...

    found = [task async for task in seeds(Shop())]
    assert [task.url.rpartition("/")[2] for task in found] == [
        *("catalog?page=1", "catalog?page=0", "about")
    ]
    assert [(task.job_type, task.priority) for task in found[:2]] == [
        ("parse", 10),
        ("listing", -3),
    ]
    assert found[1].meta == {KEY: {"index": 1, "page": 0, "issued": 0}}


async def test_a_handler_that_is_not_there_is_said_before_the_crawl() -> None:
    class Shop(Spider):
        catalogue = Catalogue(URL, items="li", handler="lisitng")

    with pytest.raises(ConfigError, match=r"Shop\.catalogue: no method 'lisitng'"):
        _ = [task async for task in seeds(Shop())]


async def test_a_handler_may_have_that_name_and_a_property_too() -> None:
    class Handled(Spider):
        def catalogue(self, page: Page) -> None: ...  # type: ignore[override]

    class Computed(Spider):
        @property
        def catalogue(self) -> Catalogue:  # type: ignore[override]
            return ITEMS

    assert [task.url async for task in seeds(Handled())] == []
    assert [task.url async for task in seeds(Computed())] == [ITEMS.address(1)]


# The last page


@pytest.mark.parametrize(
    ("template", "url", "number"),
    [
        (URL, "http://www.shop.example/de/catalog?sort=price&page=42#top", 42),
        (URL, "https://shop.example/catalog?per_page=42", None),
        (URL, "https://shop.example/catalog?page=4x", None),
        ("https://s.example/c/{page}", "https://s.example/c/17/", 17),
        ("https://s.example/c/{page}", "https://s.example/product/17", None),
        ("https://s.example/{page}", "https://s.example/17?a=1", 17),
        ("https://s.example/c/p-{page}.html", "https://s.example/c/p-17.html", 17),
        ("https://s.example/c/p-{page}.html", "https://s.example/c/p-17.htm", None),
        ("https://s.example/?f[page]={page}", "https://s.example/?f%5Bpage%5D=17", 17),
        ("https://s.example/{page}/of-{page}", "https://s.example/17/of-17", 17),
    ],
)
def test_the_number_at_the_place_in_an_address(template: str, url: str, number: int | None) -> None:
    assert Catalogue(template, items="li").number_in(url) == number


@pytest.mark.parametrize(
    ("query", "body", "last"),
    [
        ("a.last::attr(href)", '<a class=last href="?page=400&amp;y=2024">', 400),
        ("a.last::attr(href)", '<a class=last href="?p=7&ref=2024">', None),
        ("b::attr(data-last)", "<b data-last=400>", 400),
        ("a.last", '<a class=last href="/catalog?page=400">to 9,999 things</a>', 400),
        ("a.last", '<a class=last href="#">400</a>', 400),
        ("a.last", '<a class=last href="http://[">400</a>', 400),
        (".pages a", '<p class=pages><a href="?page=2">2</a><a href="?page=400">»</a>', 400),
        (".pages", "<p class=pages><b>398</b> <b>399</b> <b>400</b>", 400),
        ("p::text", "<p>Page 3/400</p>", 400),
        ("text", "<text>Page 3/400</text>", 400),
        ("p::text", "<p>no pages</p>", None),
        ("p", "", None),
    ],
)
def test_the_last_page_by_a_link_or_a_text(query: str, body: str, last: int | None) -> None:
    assert Catalogue(URL, last=query).last_named(page_of(body), 1) == last


def test_the_last_page_by_a_total() -> None:
    count = "<p class=count>{}</p>".format
    assert TOTAL.last_named(page_of(count("1-20 of <b>4,813</b>")), 1) == 241
    assert TOTAL.last_named(page_of(count("4801-4813 of 4,813")), 241) == 241
    assert TOTAL.last_named(page_of(count("4.813 Produkte")), 1) is None
    assert TOTAL.last_named(page_of(count("0 products, 0-0")), 1) == 1
    sized = Catalogue(URL, total="p.count", per_page=24, first=0)
    assert sized.last_named(page_of(count("4.813 Produkte")), 0) == 200
