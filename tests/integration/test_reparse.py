"""`shoal reparse`: the spider is corrected, the site is gone, and the items are right after all."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from shoal.demo.shop import Shop
from support.processes import Ended, Folder
from support.rarely import first_then_rare
from support.shops import shop_urls
from support.sites import serving
from support.small_site import THINGS, put_spider, small_site

SHOP_SPIDER = """
from shoal.demo.spider import Product, ShopSpider

class Shop(ShopSpider):
    name = "shop"

    def product(self, page):
        for found in super().product(page):
            if isinstance(found, Product):
                found.title = {title}
            yield found
"""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """With a crawl of the small site in it, which is closed by now."""
    folder = Folder(tmp_path)
    with serving(small_site()) as site:
        put_spider(folder, site)
        assert folder.shoal("crawl", "small.py", "--archive", "file:raw").code == 3
    return folder


def correct(folder: Folder, before: str, after: str) -> None:
    text = (folder.path / "small.py").read_text()
    assert before in text
    folder.write("small.py", text.replace(before, after))


def things(folder: Folder) -> dict[str, Any]:
    return {item["path"]: item["size"] for item in folder.export("small") if "path" in item}


def assert_one_line(ended: Ended, says: str) -> None:
    assert ended.code == 2, ended
    assert re.fullmatch(r"shoal: .+\n", ended.err), ended.err
    assert says in ended.err


@pytest.mark.parametrize("fmt", first_then_rare("blobs", "warc"))
def test_a_shop_is_read_again(tmp_path: Path, fmt: str) -> None:
    folder = Folder(tmp_path)
    folder.write("shop.py", SHOP_SPIDER.format(title="'wrong'"))
    with serving(Shop(hosts=2, products=40)) as shop:
        crawl = ("crawl", "shop.py", "--allow-private", "--rate", "none", "--workers", "2")
        archive = ("--archive", "file:raw@home", "--archive-format", fmt)
        env = shop_urls(shop)
        assert folder.shoal(*crawl, *archive, env=env).code == 3
        expected, good, broken = shop.expected_items(), len(shop.good()), len(shop.broken())
    before = {item["sku"]: item for item in folder.export("shop")}
    assert {item["title"] for item in before.values()} == {"wrong"}
    folder.write("shop.py", SHOP_SPIDER.format(title="found.title"))
    ended = folder.shoal("reparse", "shop", "--json", env=env)
    assert ended.code == 3, ended  # Broken products are as broken as they were.
    told = ended.json()
    assert (told["items"], told["rejected"], told["failed"]) == (good, 0, broken)
    assert all("ValueError: could not convert string to float" in why for why in told["reasons"])
    after = {item["sku"]: item for item in folder.export("shop")}
    assert {sku: {"title": i["title"], "price": i["price"]} for sku, i in after.items()} == expected
    for sku, item in after.items():
        assert item["_scraped_at"] == before[sku]["_scraped_at"]


def test_it_reads_what_the_last_run_left(folder: Folder) -> None:
    before = things(folder)
    assert sorted(before) == THINGS
    correct(folder, "size=len(page.body)", "size=-len(page.body)")
    ended = folder.shoal("reparse", "small")
    assert ended.code == 3, ended
    assert things(folder) == {path: -size for path, size in before.items()}
    assert re.search(r"pages +│ 6 read again", ended.out), ended.out
    assert re.search(r"failed +│ 1 pages", ended.out), ended.out
    assert "/broken: ValueError: a broken page" in ended.out
    assert ended.err == ""


@pytest.mark.rare
def test_a_handler_that_changes_what_it_is_given(folder: Folder) -> None:
    """What the archive has is what the handler got, whatever it made of it."""
    with serving(small_site()) as site:
        put_spider(folder, site)
        correct(folder, "path = urlsplit", "page.meta['me'] = self; path = urlsplit")
        crawl = ("crawl", "small.py", "--fresh", "--archive", "file:raw2")
        assert folder.shoal(*crawl).code == 3
    correct(folder, "size=len(page.body)", "size=len(page.meta)")
    assert folder.shoal("reparse", "small").code == 3
    assert set(things(folder).values()) == {1}


def test_a_page_that_broke_the_handler_can_be_read_now(folder: Folder) -> None:
    correct(folder, 'raise ValueError("a broken page")', "pass")
    ended = folder.shoal("reparse", "small", "--json")
    assert (ended.code, ended.json()["failed"], ended.json()["reasons"]) == (0, 0, [])
    assert sorted(things(folder)) == sorted([*THINGS, "/broken"])


def test_a_page_that_this_machine_cannot_try_is_one_that_failed(folder: Folder) -> None:
    correct(folder, "raise ValueError(", "from shoal.errors import OwnFault; raise OwnFault(")
    ended = folder.shoal("reparse", "small", "--json")
    assert (ended.code, ended.json()["failed"]) == (3, 1)
    assert "OwnFault: a broken page" in ended.json()["reasons"][0]


@pytest.mark.rare
def test_a_newer_scrape_stays(folder: Folder) -> None:
    with serving(small_site()) as site:
        put_spider(folder, site)
        correct(folder, "size=len(page.body)", "size=1")
        assert folder.shoal("crawl", "small.py", "--fresh").code == 3
    assert_one_line(folder.shoal("reparse", "small"), "had no archive")
    correct(folder, "size=1", "size=2")
    ended = folder.shoal("reparse", "small", "--archive", "file:raw", "--json")
    assert ended.json()["items"] == len(THINGS) + 1
    assert set(things(folder).values()) == {1}


@pytest.mark.rare
def test_twice_is_as_once(folder: Folder) -> None:
    correct(folder, "size=len(page.body)", "size=7")
    told = [folder.shoal("reparse", "small", "--json").json() for _ in range(2)]
    assert told[0] == told[1]
    assert set(things(folder).values()) == {7}
    assert len(folder.export("small")) == len(THINGS) + 1


@pytest.mark.rare
def test_items_that_are_not_valid_are_rejected(folder: Folder) -> None:
    correct(folder, "size=len(page.body)", "size='much'")
    told = folder.shoal("reparse", "small", "--json").json()
    assert (told["items"], told["rejected"]) == (1, len(THINGS))


@pytest.mark.rare
def test_another_spider_and_another_archive(folder: Folder) -> None:
    correct(folder, "size=len(page.body)", "size=7")
    (folder.path / "small.py").rename(folder.path / "other.py")
    (folder.path / "raw").rename(folder.path / "moved")
    assert_one_line(folder.shoal("reparse", "small"), "no such file: small.py")
    ended = folder.shoal("reparse", "small", "--spider", "other.py:Small")
    assert_one_line(ended, "file:raw has no pages of a crawl named 'small'")
    options = ("--spider", "other.py", "--archive", "file:moved")
    assert folder.shoal("reparse", "small", *options).code == 3
    assert set(things(folder).values()) == {7}


@pytest.mark.rare
def test_what_is_missing_in_the_archive_is_told(folder: Folder) -> None:
    blobs = sorted((folder.path / "raw" / "blobs").glob("*/*"))
    blobs[0].unlink()
    blobs[1].write_bytes(b"nonsense")
    ended = folder.shoal("reparse", "small", "--json")
    reasons = " ".join(ended.json()["reasons"])
    assert ended.code == 3
    assert "is gone" in reasons
    assert "is damaged" in reasons


def test_what_there_is_nothing_to_read_for(folder: Folder) -> None:
    assert_one_line(folder.shoal("reparse", "nope"), "no crawl named 'nope'")
    assert_one_line(folder.shoal("reparse", "small", "--archive", "ftp://x"), "no archive for")
    assert_one_line(folder.shoal("reparse", "small", "--results", "sqlite:///x.db"), "not exist")
    ended = folder.shoal("reparse", "nope", "--spider", "small.py")
    assert_one_line(ended, "the last run of 'nope' had no archive: name one with --archive")
    nothing = ("--spider", "small.py", "--archive", "file:raw")
    assert_one_line(folder.shoal("reparse", "nope", *nothing), "no pages of a crawl named 'nope'")
    assert not (folder.path / "x.db").exists()
