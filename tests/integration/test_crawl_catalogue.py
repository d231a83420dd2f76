"""Catalogues in real crawls: every way of counting, wrong ones, endless ones, ones that change."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from shoal import Page, Spider, Summary, Task, crawl
from shoal.config import Rules, build
from shoal.fleet.crawl import run_crawl
from shoal.fleet.stores import stores_at
from shoal.frontier.admission import Admission
from shoal.frontier.values import Entry, TaskState
from shoal.spider.own_settings import settings_of
from support.catalogues import (
    ListingSite,
    NextSpider,
    ShopSpider,
    products_of,
    spider_of,
)
from support.processes import Folder
from support.redis_servers import RedisServer
from support.sites import serving
from support.until import in_time, until

PAGES = 23
LAST, TOTAL, ITEMS = {"last": "a.last"}, {"total": ".count"}, {"items": "li"}
WAYS = {
    "a link": ("gone", {"last": "a.last::attr(href)"}),
    "a total": ("gone", TOTAL),
    "probing, gone": ("gone", ITEMS),
    "probing, empty": ("empty", ITEMS),
    "probing, redirected": ("back", ITEMS),
}


@contextmanager
def open_site(pages: int = PAGES, past_the_end: str = "gone") -> Iterator[ListingSite]:
    with serving(ListingSite(pages, past_the_end=past_the_end)) as site:
        yield site


def crawled(folder: Path, spider: type[Spider], **options: Any) -> Summary:
    store = f"sqlite:///{folder}/shoal.db"
    summary = crawl(spider, **{"frontier": store, "results": store, **options})
    assert summary.finished
    return summary


@pytest.mark.parametrize("way", WAYS)
def test_all_pages_are_read_once_however_they_are_counted(way: str, tmp_path: Path) -> None:
    past_the_end, options = WAYS[way]
    with open_site(past_the_end=past_the_end) as site:
        summary = crawled(tmp_path, spider_of(site, options), max_depth=1)
    read = Counter(page for page in site.listed() if page <= PAGES)
    assert read == Counter(range(1, PAGES + 1))
    assert site.products() == products_of(PAGES)
    assert summary.stats.dead == 0
    past = {page for page in site.listed() if page > PAGES}
    assert len(past) <= 12 if "items" in options else not past
    numbers = {item["page"] for item in Folder(tmp_path).export("shop") if "page" in item}
    assert numbers >= set(range(1, PAGES + 1))


def test_several_catalogues_also_on_redis(tmp_path: Path) -> None:
    ways = (LAST, ITEMS)
    with RedisServer(tmp_path / "redis") as server, open_site(6) as one, open_site(9) as other:
        both = [
            spider_of(site, way).catalogue for site, way in zip((one, other), ways, strict=True)
        ]
        spider = type("Both", (ShopSpider,), {"catalogue": both})
        crawled(tmp_path, spider, frontier=server.url)
    assert (one.products(), other.products()) == (products_of(6), products_of(9))


def test_listing_pages_come_before_what_they_lead_to(tmp_path: Path) -> None:
    with open_site(5) as site:
        crawled(tmp_path, spider_of(site, LAST), concurrency=1)
    assert [path.partition("?")[0] for path in site.paths[:5]] == ["/catalog"] * 5


@pytest.mark.parametrize("options", [{"last": "a.lsat"}, {"total": "h2"}, {"items": "tr"}])
def test_a_wrong_selector_is_said_and_the_first_page_is_read(
    options: dict[str, str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with open_site() as site:
        crawled(tmp_path, spider_of(site, options))
        explained = Folder(tmp_path).find("shop", site.template.replace("{page}", "1"))
    assert site.listed() == [1]
    assert site.products() == products_of(1)
    (warning,) = caplog.messages
    (query,) = options.values()
    assert f"{query!r} found nothing to count by on its first page" in warning
    assert explained is not None
    assert explained.reason == warning


@pytest.mark.parametrize("options", [LAST, TOTAL, ITEMS])
def test_an_endless_catalogue_stops_at_the_limit_and_says_so(
    options: dict[str, str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with open_site(10**12) as site:
        crawled(tmp_path, spider_of(site, options, limit=20))
    assert sorted(site.listed()) == list(range(1, 21))
    (warning,) = caplog.messages
    assert "only its first 20 pages are read" in warning
    assert site.template in warning


class Growing(ListingSite):
    """Has other pages once anybody has asked for a certain address."""

    def __init__(self, pages: int, then: int, when: str) -> None:
        super().__init__(pages)
        self._then, self._when = then, when

    def page(self, path: str) -> Any:
        answer = super().page(path)
        if path == self._when:
            self.pages = self._then
        return answer


@pytest.mark.parametrize("options", [LAST, TOTAL])
def test_a_catalogue_that_grows_while_it_is_read(options: dict[str, str], tmp_path: Path) -> None:
    with serving(Growing(5, 9, when="/catalog?page=3")) as site:
        crawled(tmp_path, spider_of(site, options), concurrency=1)
    assert sorted(site.listed()) == list(range(1, 10))
    assert site.products() == products_of(9)


def test_one_that_is_probed_is_looked_at_again_in_the_end(tmp_path: Path) -> None:
    with serving(Growing(5, 9, when="/product/10")) as site:
        crawled(tmp_path, spider_of(site, ITEMS))
    assert site.products() == products_of(9)
    assert site.listed()[-1] == 10


def test_a_catalogue_that_shrinks_while_it_is_read(tmp_path: Path) -> None:
    with serving(Growing(9, 5, when="/catalog?page=1")) as site:
        summary = crawled(tmp_path, spider_of(site, LAST))
        gone = Folder(tmp_path).find("shop", site.template.replace("{page}", "7"))
    assert site.products() == products_of(5)
    assert (summary.stats.dropped, summary.stats.dead, summary.exit_code) == (4, 0, 0)
    assert gone is not None
    assert (gone.state, gone.reason) == (
        TaskState.DROPPED,
        "past the end of the catalogue (HTTP 404)",
    )


def test_a_handler_that_fails_does_not_hide_the_other_pages(tmp_path: Path) -> None:
    def parse(self: Spider, page: Page) -> list[Any]:
        number = page.meta["catalogue"]["page"]
        if number in (1, 4):
            raise LookupError("no such thing")
        return page.follow_all("li a", handler="product")

    with open_site(6) as site:
        spider = spider_of(site, ITEMS, type("Failing", (ShopSpider,), {"parse": parse}))
        summary = crawled(tmp_path, spider)
    assert {*range(1, 7)} <= {*site.listed()}
    assert summary.stats.dead == 2


def test_a_handler_that_follows_next_as_well_fetches_nothing_twice(tmp_path: Path) -> None:
    with open_site() as site:
        crawled(tmp_path, spider_of(site, ITEMS, NextSpider))
    read = Counter(page for page in site.listed() if page <= PAGES)
    assert read == Counter(range(1, PAGES + 1))


def test_wrong_use_is_one_line_of_the_command(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write(
        "shop.py",
        "from shoal import Catalogue, Spider\n\n"
        "class Shop(Spider):\n"
        "    catalogue = Catalogue('https://shop.example/?page={page}', last='a[')\n",
    )
    ended = folder.shoal("crawl", "shop.py")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == (
        f"shoal: {folder.path}/shop.py:4:"
        " Catalogue('https://shop.example/?page={page}'): not a CSS selector: 'a['\n"
    )


# Must show

LATENCY_S = 0.1
MANY = 400
CHAIN = 30


class Listing(ShopSpider):
    """Reads listing pages and follows nothing: what it adds are pages of the catalogue."""

    def parse(self, page: Page) -> Iterator[Any]:
        return iter(())


def entry_of(site: ListingSite, page: int) -> Entry:
    return Admission(Rules()).admitted_as(Task(url=site.template.replace("{page}", str(page))))


async def seconds_until_known(folder: Path, spider: type[Spider], site: ListingSite) -> float:
    """How long it takes until the frontier knows all pages of the site."""
    folder.mkdir()
    store = f"sqlite:///{folder}/shoal.db"
    settings = build({**settings_of(spider), "frontier": store, "results": store})
    began = time.monotonic()
    running = asyncio.create_task(run_crawl(spider, settings, targets=None, fresh=True))
    async with stores_at(settings, archive=False) as stores:

        async def is_known(page: int) -> bool:
            assert not running.done(), await running
            return bool(site.hits) and bool(
                await stores.frontier.find("shop", entry_of(site, page))
            )

        for page in range(1, site.pages + 1):
            await until(f"page {page}", partial(is_known, page))
    took = time.monotonic() - began
    site.latency_s = 0.0  # The rest is of no interest.
    await in_time("the crawl's end", running)
    return took


@pytest.mark.alone
@pytest.mark.rare
async def test_a_catalogue_is_issued_in_less_than_a_tenth_of_the_time_of_next(
    tmp_path: Path,
) -> None:
    with serving(ListingSite(CHAIN, latency_s=LATENCY_S)) as site:
        spider = type(
            "Next", (NextSpider,), {"name": "shop", "start_urls": [f"{site.url}catalog?page=1"]}
        )
        following_s = await seconds_until_known(tmp_path / "next", spider, site) * MANY / CHAIN
    for options in (LAST, TOTAL, ITEMS):
        with serving(ListingSite(MANY, latency_s=LATENCY_S)) as site:
            spider = spider_of(site, options, Listing)
            took_s = await seconds_until_known(tmp_path / next(iter(options)), spider, site)
        print(options, f"{took_s:.2f} s, next {following_s:.1f} s")
        assert took_s < following_s / 10, options
