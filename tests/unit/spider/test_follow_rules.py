"""Rules of a spider: what Scrapy's CrawlSpider does."""

from __future__ import annotations

import re
from typing import Any

import pytest

from shoal import Follow, Page, Spider, Task
from shoal.errors import ConfigError
from shoal.fleet.target import create
from shoal.spider.harvest import harvest

URL = "https://shop.example/"
HTML = b"""
<nav><a href="/catalog?page=2">next</a> <a href="/catalog?sort=price">sort</a></nav>
<main><a href="/product/1">one</a><a href="/product/1">again</a>
<a href="/product/2.pdf">pdf</a></main>
<map><area href="/about"></map><a rel="nofollow" href="/login">log in</a>
"""


class Shop(Spider):
    start_urls = (URL,)
    rules = (
        Follow(allow="/product/", handler="product", priority=5, meta={"from": "rule"}),
        Follow("nav a", deny="/*?sort=", handler="listing", follow=True),
        Follow(within="map"),
        Follow("main a", handler="listing"),
    )

    def product(self, page: Page) -> Any:
        yield {"url": page.url}
        yield page.follow("/review")

    def listing(self, page: Page) -> None:
        return None


def page_for(handler: str, content_type: str = "text/html") -> Page:
    return Page(
        url=URL,
        status=200,
        headers={"Content-Type": content_type},
        body=HTML,
        task=Task(url=URL, job_type=handler, depth=3),
        fingerprint=b"12345678",
    )


async def links(spider: Spider, handler: str = "parse", **page: Any) -> list[tuple[str, str]]:
    found = await harvest(spider, page_for(handler, **page))
    return [(task.url.removeprefix(URL), task.job_type) for task in found.tasks]


async def test_each_link_is_followed_by_the_first_rule_that_it_fits() -> None:
    assert await links(create(Shop)) == [
        ("product/1", "product"),
        ("product/1", "product"),
        ("catalog?page=2", "listing"),
        ("about", "parse"),
    ]


async def test_rules_say_how_tasks_are_followed() -> None:
    task = (await harvest(create(Shop), page_for("parse"))).tasks[0]
    assert (task.priority, task.meta, task.depth) == (5, {"from": "rule"}, 4)
    assert task.parent == b"12345678".hex()


async def test_pages_of_other_handlers_are_not_followed_unless_a_rule_says_so() -> None:
    assert await links(create(Shop), "product") == [("review", "parse")]
    assert len(await links(create(Shop), "listing")) == 4


async def test_what_parse_yields_itself_comes_first() -> None:
    class Own(Spider):
        rules = (Follow(within="map", nofollow=True),)

        def parse(self, page: Page) -> Any:
            yield page.follow("/own")

    assert await links(create(Own)) == [("own", "parse"), ("about", "parse")]


async def test_rules_are_for_html() -> None:
    assert await links(create(Shop), content_type="application/pdf") == []


async def test_files_are_followed_where_the_rule_says_so() -> None:
    class Files(Spider):
        rules = (Follow("main a", files=True),)

    assert [url for url, _ in await links(create(Files))][-1] == "product/2.pdf"


async def test_patterns_may_come_from_a_generator() -> None:
    class Many(Spider):
        rules = (Follow(allow=(f"/{name}" for name in ("about", "login"))),)

    spider = create(Many)
    assert await links(spider) == await links(spider) == [("about", "parse"), ("login", "parse")]


async def test_rules_may_be_made_by_the_spider() -> None:
    class Made(Spider):
        def __init__(self) -> None:
            self.rules = (Follow(allow="/about"),)

    assert await links(create(Made)) == [("about", "parse")]


async def test_a_spider_without_rules_needs_parse() -> None:
    with pytest.raises(NotImplementedError, match="Spider has no method 'parse'"):
        await harvest(create(Spider), page_for("parse"))


def test_handlers_are_looked_for_when_the_spider_is_made() -> None:
    class Typo(Spider):
        rules = (Follow(handler="produt"),)

    with pytest.raises(ConfigError, match=r"Typo\.rules: no method 'produt' to read the pages"):
        create(Typo)


@pytest.mark.parametrize("wrong", [Follow(), ["a"], 5, lambda page: None])
def test_rules_are_a_list(wrong: Any) -> None:
    class Wrong(Spider):
        rules = wrong

    with pytest.raises(ConfigError, match=r"Wrong.rules"):
        create(Wrong)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"links": "a["}, "a["),
        ({"within": "main >"}, "main >"),
        ({"allow": r"/item/\d+"}, "it looks like a regular expression"),
        ({"deny": re.compile("x")}, "regular expression"),
        ({"allow": 5}, "a text, or a list of texts"),
        ({"handler": "no name"}, "a handler must be a method of the spider"),
    ],
)
def test_what_is_wrong_is_said_where_it_is_written(how: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        Follow(**how)
