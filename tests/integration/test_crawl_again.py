"""Crawling again: what has not changed is not sent, items stay, and what is gone is marked."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shoal import Item, Page, Spider, crawl
from shoal.core.records import StoredItem
from shoal.errors import ConfigError
from shoal.fleet.summary import Summary
from shoal.results import results_at
from shoal.results.port import PageLog, Wanted
from support.postgres_servers import QUICK, PostgresServer
from support.processes import Folder
from support.sites import serving
from support.versioned_site import Version, VersionedSite

THEN = "Sun, 15 Nov 2026 03:00:00 GMT"
MONDAY, TUESDAY, WEDNESDAY = "monday", "tuesday", "wednesday"


def product(sku: str, price: int = 1) -> str:
    return f'<b data-price="{price}">{sku}</b>'


def listing(*paths: str) -> str:
    return "".join(f'<a href="{path}">x</a>' for path in paths)


def monday() -> dict[str, Version]:
    """A listing that has a version, and a product for each way to say which version it is."""
    pages = {
        "/strong": Version(product("strong"), etag='"s1"', modified=THEN),
        "/weak": Version(product("weak"), etag='W/"w1"'),
        "/dated": Version(product("dated"), modified=THEN),
        "/silent": Version(product("silent")),
        "/changing": Version(product("changing"), etag='"c1"'),
        "/going": Version(product("going"), etag='"g1"'),
        "/old-place": Version(product("moving"), etag='"m1"'),
    }
    return {"/": Version(listing(*pages), etag='"list1"'), **pages}


def tuesday() -> dict[str, Version]:
    """One product has another price, one is gone, one is new, one has moved to another page."""
    pages = monday()
    pages["/changing"] = Version(product("changing", 2), etag='"c2"')
    pages["/new"] = Version(product("new"), etag='"n1"')
    pages["/new-place"] = Version(product("moving"), etag='"m1"')
    del pages["/going"], pages["/old-place"]
    pages["/"] = Version(listing(*monday(), "/new", "/new-place"), etag='"list1"')
    return pages


class Thing(Item, key="sku"):
    sku: str
    price: int


class Shop(Spider):
    name = "shop"
    rate = "none"

    def parse(self, page: Page) -> Iterator[object]:
        yield from page.follow_all("a")
        for found in page.css("b"):
            price = found.attrib["data-price"]
            number: Any = int(price) if price.isdigit() else price
            yield Thing(sku=found.css("::text").get() or "", price=number)


class Shops:
    """Crawls of a site into one store, from Python."""

    def __init__(self, site: VersionedSite, folder: Path, results: str) -> None:
        self.site = site
        self.results = results
        self._folder = folder
        self._start = [site.url]

    def crawl(self, name: str, previous: str | None = None, **options: Any) -> Summary:
        """Crawl the site as it is now. Its counters begin anew."""
        self.site.answers.clear()
        self.site.conditions.clear()
        spider = type("Shop", (Shop,), {"start_urls": self._start})
        stores = {"frontier": f"sqlite:///{self._folder}/queue.db", "results": self.results}
        return crawl(spider, name=name, previous=previous, allow_private=True, **(stores | options))

    def items(self, name: str) -> dict[str, StoredItem]:
        """The items of a crawl by their keys, those that are gone included."""

        async def ask() -> dict[str, StoredItem]:
            async with results_at(self.results) as results:
                return {item.key: item async for item in results.items(name, Wanted(gone=True))}

        return asyncio.run(ask())

    def changed(self, name: str) -> set[str]:
        """The keys of the items that changed."""

        async def ask() -> set[str]:
            async with results_at(self.results) as results:
                return {item.key async for item in results.items(name, Wanted(changed=True))}

        return asyncio.run(ask())

    def gone(self, name: str) -> set[str]:
        """The keys of the items that are gone."""
        return {key for key, item in self.items(name).items() if item.gone_at is not None}

    def pages(self, name: str, key: str) -> list[PageLog]:
        """The page log of the page that an item came from."""
        fingerprint = self.items(name)[key].fingerprint

        async def ask() -> list[PageLog]:
            async with results_at(self.results) as results:
                return await results.pages_of(name, fingerprint)

        return asyncio.run(ask())


@pytest.fixture
def site() -> Iterator[VersionedSite]:
    with serving(VersionedSite(monday())) as site:
        yield site


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer(**QUICK) as server:
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
def shops(request: pytest.FixtureRequest, site: VersionedSite, tmp_path: Path) -> Shops:
    if request.param == "sqlite":
        return Shops(site, tmp_path, f"sqlite:///{tmp_path}/results.db")
    server: PostgresServer = request.getfixturevalue("postgres")
    return Shops(site, tmp_path, server.new_database("recrawl"))


@pytest.fixture
def shop(site: VersionedSite, tmp_path: Path) -> Shops:
    return Shops(site, tmp_path, f"sqlite:///{tmp_path}/results.db")


def test_three_days_of_a_shop(shops: Shops) -> None:
    first = shops.crawl(MONDAY)
    assert (first.items, first.gone, first.stats.unchanged) == ({"Thing": 7}, 0, 0)
    before = shops.items(MONDAY)

    shops.site.pages = tuesday()
    second = shops.crawl(TUESDAY, MONDAY)
    assert shops.site.answers == {
        ("/", 200): 1,
        ("/strong", 304): 1,
        ("/weak", 304): 1,
        ("/dated", 304): 1,
        ("/silent", 200): 1,
        ("/changing", 200): 1,
        ("/new", 200): 1,
        ("/new-place", 200): 1,
        ("/going", 404): 1,
        ("/old-place", 404): 1,
    }
    assert shops.site.conditions["/"] == shops.site.conditions["/silent"] == set()
    assert shops.site.conditions["/strong"] == {"If-None-Match", "If-Modified-Since"}
    assert (second.items, second.gone, second.stats.unchanged) == ({"Thing": 7}, 1, 3)
    after = shops.items(TUESDAY)
    assert (shops.gone(TUESDAY), shops.changed(TUESDAY)) == ({"going"}, {"changing"})
    assert after["going"].gone_at == pytest.approx(second.stats.finished_at)
    assert after["moving"].url.endswith("/new-place")
    assert json.loads(after["changing"].data) == {"sku": "changing", "price": 2}
    for key in ("strong", "weak", "dated"):
        assert (after[key].data, after[key].url) == (before[key].data, before[key].url)
        assert after[key].scraped_at > before[key].scraped_at
    (visit,) = shops.pages(TUESDAY, "strong")
    assert (visit.status, visit.verdict, visit.items, visit.body_bytes) == (304, "done", 1, 0)
    assert (visit.etag, visit.last_modified) == ('"s1"', THEN)

    shops.site.pages["/going"] = monday()["/going"]
    third = shops.crawl(WEDNESDAY, TUESDAY)
    unchanged = {path for path, status in shops.site.answers if status == 304}
    assert unchanged == {"/strong", "/weak", "/dated", "/changing", "/new", "/new-place"}
    assert (third.items, third.gone, third.stats.unchanged) == ({"Thing": 8}, 0, 6)
    assert shops.gone(WEDNESDAY) == shops.changed(WEDNESDAY) == set()
    assert after["going"].scraped_at < shops.items(WEDNESDAY)["going"].scraped_at


def test_after_a_crawl_that_missed_something_nothing_is_gone(
    shop: Shops, caplog: pytest.LogCaptureFixture
) -> None:
    shop.crawl(MONDAY)
    shop.site.pages = tuesday()
    shop.site.pages["/silent"] = Version(status=403)
    with caplog.at_level(logging.WARNING, "shoal"):
        assert shop.crawl(TUESDAY, MONDAY).stats.dead == 1
        assert shop.crawl(WEDNESDAY, MONDAY, max_pages=4).stats.remaining
    assert shop.gone(TUESDAY) == shop.gone(WEDNESDAY) == set()
    told = [line for line in caplog.messages if line.endswith("not marked gone")]
    assert told[0] == "1 task is dead: items that were not seen are not marked gone"
    assert re.match(r"\d URLs were left out \(max_pages\): ", told[1])

    shop.site.pages["/silent"] = monday()["/silent"]
    again = shop.crawl(WEDNESDAY, MONDAY)  # The same crawl goes on to its end.
    assert (again.stats.remaining, again.gone) == (0, 1)
    assert shop.gone(WEDNESDAY) == {"going"}


def test_a_304_that_nobody_asked_for_is_no_page(shop: Shops) -> None:
    shop.crawl(MONDAY)
    shop.site.pages["/silent"] = Version(status=304)
    again = shop.crawl(TUESDAY, MONDAY)
    assert (again.stats.dead, again.stats.unchanged) == (1, 6)
    assert "silent" not in shop.items(TUESDAY)


def test_pages_that_must_be_read_in_full(shop: Shops) -> None:
    """All have a version, and are as they were."""
    pages = {
        "/leads-out": Version(product("a") + listing("https://elsewhere.example/"), etag='"1"'),
        "/alias": Version(product("b") + '<link rel="canonical" href="/b">', etag='"1"'),
        "/itself": Version(product("c") + '<link rel="canonical" href="/itself">', etag='"1"'),
        "/bad": Version(product("d") + '<b data-price="free">bad</b>', etag='"1"'),
        "/one": Version(product("twice"), etag='"1"'),
        "/two": Version(product("twice"), etag='"1"'),
    }
    shop.site.pages = {"/": Version(listing(*pages)), **pages}
    options: dict[str, Any] = {"canonical": True, "allowed_hosts": "127.0.0.1", "concurrency": 1}
    shop.crawl(MONDAY, **options)
    del shop.site.pages["/two"]
    again = shop.crawl(TUESDAY, MONDAY, **options)
    asked = {path for path, names in shop.site.conditions.items() if names}
    assert asked == {"/itself"}
    assert again.gone == 0
    assert set(shop.items(TUESDAY)) == {"a", "b", "c", "d", "twice"}


def test_what_has_not_changed_is_not_archived_again(shop: Shops, tmp_path: Path) -> None:
    archive = f"file://{tmp_path}/raw"
    shop.crawl(MONDAY, archive=archive)
    shop.crawl(TUESDAY, MONDAY, archive=archive)
    archived = {key: bool(shop.pages(TUESDAY, key)[0].archived) for key in shop.items(TUESDAY)}
    unchanged = dict.fromkeys(("strong", "weak", "dated", "changing", "going", "moving"), False)
    assert archived == {**unchanged, "silent": True}


def test_crawls_that_there_are_not(shop: Shops) -> None:
    shop.crawl(MONDAY)
    with pytest.raises(ConfigError, match="no results of a crawl 'mnday' here"):
        shop.crawl(TUESDAY, "mnday")
    with pytest.raises(ConfigError, match="'monday' is this crawl itself"):
        shop.crawl(MONDAY, MONDAY, fresh=True)
    assert len(shop.items(MONDAY)) == 7
    assert shop.items(TUESDAY) == {}


SPIDER = """
from shoal import Item, Spider

class Thing(Item, key="sku"):
    sku: str
    price: int

class Shop(Spider):
    name = "shop"
    rate = "none"
    start_urls = ["{url}"]

    def parse(self, page):
        yield from page.follow_all("a")
        for found in page.css("b"):
            yield Thing(sku=found.css("::text").get(), price=int(found.attrib["data-price"]))
"""


def test_on_the_command_line(site: VersionedSite, tmp_path: Path) -> None:
    folder = Folder(tmp_path, {"SHOAL_ALLOW_PRIVATE": "true"})
    folder.write("shop.py", SPIDER.format(url=site.url))
    assert folder.shoal("crawl", "shop.py", "--name", MONDAY).code == 0
    site.pages = tuesday()
    ended = folder.shoal(
        *("crawl", "shop.py", "--name", TUESDAY, "--previous", MONDAY, "--workers", "2", "--json")
    )
    assert ended.code == 0, ended
    assert (ended.json()["unchanged"], ended.json()["gone"]) == (3, 1), ended.out

    written = folder.shoal("export", TUESDAY, "--gone").out.splitlines()
    gone_at = {item["sku"]: item["_gone_at"] for item in map(json.loads, written)}
    assert [sku for sku, at in gone_at.items() if at] == ["going"]
    assert {item["sku"] for item in folder.export(TUESDAY)} == gone_at.keys() - {"going"}
    changed = folder.shoal("export", TUESDAY, "--where-changed").out.splitlines()
    assert [json.loads(line)["sku"] for line in changed] == ["changing"]
    assert "gone since 20" in folder.shoal("explain", TUESDAY, f"{site.url}going").out
