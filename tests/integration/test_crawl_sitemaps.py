"""Sitemaps: queued by whoever names them, read by the crawl's workers as pages are."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from aiohttp import web

from shoal.config import Settings
from shoal.seeds.sitemap_tasks import MAX_LEVELS
from support.processes import Ended, Folder
from support.redis_servers import RedisServer
from support.sitemaps import SiteWithSitemaps, index, urlset
from support.sites import serving
from support.until import until_now

MANY = 50_000

SPIDER = """
from shoal import Spider

class Shop(Spider):
    rate = "none"
    allow_private = True

    def parse(self, page):
        yield {"url": page.url, "depth": page.task.depth, "meta": page.meta}
"""


@pytest.fixture
def site() -> Iterator[SiteWithSitemaps]:
    with serving(SiteWithSitemaps()) as site:
        yield site


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path)
    folder.write("spider.py", SPIDER)
    return folder


def seed(folder: Folder, *sitemaps: str, more: tuple[str, ...] = ()) -> Ended:
    named = [word for sitemap in sitemaps for word in ("--sitemap", sitemap)]
    return folder.shoal("seed", "shop", *named, *more)


def crawl(folder: Folder) -> dict[str, Any]:
    summary: dict[str, Any] = folder.shoal("crawl", "spider.py", "--json").json()
    return summary


def pages_of(folder: Folder) -> list[str]:
    return sorted(item["url"] for item in folder.export("shop"))


def explained(folder: Folder, url: str) -> str:
    return str(folder.shoal("explain", "shop", url, "--json").json()["verdict"])


def dead_of(folder: Folder) -> dict[str, str]:
    dead = folder.shoal("dead", "list", "shop", "--json").json()
    return {task["url"].rpartition("/")[2]: task["reason"] for task in dead}


def test_a_site_with_nested_packed_broken_and_missing_sitemaps(
    folder: Folder, site: SiteWithSitemaps
) -> None:
    one, two, three, five = site.pages(1, 2, 3, 5)
    site.bodies = {
        "/index.xml": index("/a.xml.gz", "/moved/b.xml", "/cut.xml", "/gone.xml", "/page.html"),
        "/a.xml.gz": gzip.compress(urlset(one, two)),
        "/b.xml": urlset(two, three, "ftp://a.example/4", "/p/relative"),
        "/cut.xml": urlset(five)[:-5],
        "/page.html": b"<!doctype html><html>",
    }
    ended = seed(folder, f"{site.url}index.xml")
    assert ended.code == 0
    assert ended.out == (
        "shop: 1 added, 0 known already, 0 bad\n"
        "shop: 1 sitemap queued; workers read them and queue the pages they list\n"
    )
    assert (site.hits, site.robots_hits) == ([], [])
    summary = crawl(folder)
    assert (summary["exit_code"], summary["dead"], summary["dropped"]) == (3, 2, 1)
    assert (summary["duplicates"], summary["filtered"]) == (1, 2)
    assert pages_of(folder) == [one, two, three, five]
    assert {(item["depth"], str(item["meta"])) for item in folder.export("shop")} == {(0, "{}")}
    dead = dead_of(folder)
    assert dead.keys() == {"cut.xml", "page.html"}
    assert dead["cut.xml"].startswith("not whole")
    assert dead["page.html"] == "it is HTML, not a sitemap"
    found_on = folder.shoal("explain", "shop", one, "--json").json()["found_on"]
    assert found_on == [f"{site.url}a.xml.gz", f"{site.url}index.xml"]
    assert explained(folder, f"{site.url}index.xml") == "done"
    assert explained(folder, f"{site.url}page.html") == "dead: it is HTML, not a sitemap"


@pytest.mark.parametrize("written", ["", "robots.txt"])
@pytest.mark.parametrize("rules", ["Disallow: /x", "Disallow: /robots.txt"])
def test_robots_txt_names_the_sitemaps(
    folder: Folder, site: SiteWithSitemaps, written: str, rules: str
) -> None:
    site.bodies = {
        "/robots.txt": f"User-agent: *\n{rules}\nSITEMAP: /one.xml\nSitemap: /two.xml".encode(),
        "/one.xml": urlset(*site.pages(1)),
        "/two.xml": urlset(*site.pages(2)),
    }
    ended = seed(folder, f"{site.url}{written}", more=("--json",))
    counts = {"added": 1, "duplicates": 0, "retried": 0, "sitemaps": 1, "bad": 0}
    assert ended.json() == {"crawl": "shop", **counts}
    assert crawl(folder)["exit_code"] == 0
    assert pages_of(folder) == site.pages(1, 2)


def test_a_site_without_a_robots_txt_has_them_where_all_have_them(
    folder: Folder, site: SiteWithSitemaps
) -> None:
    site.bodies = {"/sitemap.xml": urlset(*site.pages(1))}
    seed(folder, site.url)
    assert crawl(folder)["exit_code"] == 0
    assert pages_of(folder) == site.pages(1)


def test_robots_txt_is_obeyed(folder: Folder, site: SiteWithSitemaps) -> None:
    site.bodies = {
        "/robots.txt": b"User-agent: *\nDisallow: /private",
        "/private.xml": urlset(*site.pages(1)),
    }
    seed(folder, f"{site.url}private.xml")
    assert crawl(folder)["dropped"] == 1
    assert site.hits == []


def test_only_what_has_changed_since(folder: Folder, site: SiteWithSitemaps) -> None:
    old, new, none = site.pages("old", "new", "none")
    site.bodies = {
        "/old.xml": urlset(old, more="<lastmod>2001-01-01</lastmod>"),
        "/new.xml": urlset(new, more="<lastmod>2990-01-01</lastmod>"),
        "/none.xml": urlset(none),
        "/index.xml": index("/old.xml", "/new.xml", "/none.xml"),
    }
    seed(folder, f"{site.url}index.xml", more=("--since", "7d"))
    crawl(folder)
    assert pages_of(folder) == [new, none]


def test_each_seeding_reads_them_again_but_each_only_once(
    folder: Folder, site: SiteWithSitemaps
) -> None:
    site.bodies = {
        "/index.xml": index("/index.xml", "/a.xml", "/a.xml"),
        "/a.xml": urlset(*site.pages(1)),
    }
    seed(folder, f"{site.url}index.xml", f"{site.url}a.xml")
    crawl(folder)
    assert sorted(site.paths) == ["/a.xml", "/index.xml", "/p/1"]
    site.bodies["/a.xml"] = urlset(*site.pages(1, 2))
    seed(folder, f"{site.url}index.xml")
    assert crawl(folder)["exit_code"] == 0
    assert pages_of(folder) == site.pages(1, 2)


def test_a_sitemap_that_many_are_redirected_to_is_read_once(
    folder: Folder, site: SiteWithSitemaps
) -> None:
    site.bodies = {
        "/index.xml": index("/moved/a.xml", "/moved/moved/a.xml", "/moved/moved/moved/a.xml"),
        "/a.xml": urlset(*site.pages(1)),
    }
    seed(folder, f"{site.url}index.xml")
    assert crawl(folder)["exit_code"] == 0
    moved = ["/moved" * times + "/a.xml" for times in (1, 2, 3)]
    assert sorted(site.paths) == ["/a.xml", "/index.xml", *moved, "/p/1"]
    seed(folder, f"{site.url}moved/a.xml")
    crawl(folder)
    assert site.paths.count("/a.xml") == 2


def test_a_page_that_was_read_can_be_read_as_a_sitemap(
    folder: Folder, site: SiteWithSitemaps
) -> None:
    site.bodies = {"/all.xml": urlset(*site.pages(1))}
    folder.shoal("seed", "shop", f"{site.url}all.xml")
    crawl(folder)
    seed(folder, f"{site.url}all.xml")
    crawl(folder)
    assert pages_of(folder) == [f"{site.url}all.xml", *site.pages(1)]


def test_fifty_thousand_pages_in_one_that_is_larger_than_a_page_may_be(
    folder: Folder, site: SiteWithSitemaps
) -> None:
    site.bodies = {"/all.xml": urlset(*site.pages(*("x" * 150 + str(n) for n in range(MANY))))}
    assert len(site.bodies["/all.xml"]) > Settings().max_body_bytes
    seed(folder, f"{site.url}all.xml")
    # It is asked for again once it is known to be so large.
    assert folder.shoal("crawl", "spider.py", "--max-pages", "2").code == 0
    assert site.paths == ["/all.xml"] * 2
    stats = folder.stats("shop")
    assert (stats.done, stats.added, stats.waiting) == (2, MANY + 2, MANY)


def test_sitemaps_that_are_slow_keep_nobody_waiting(folder: Folder, site: SiteWithSitemaps) -> None:
    """With these settings there is room for one large sitemap at once: these are not large."""
    slow = [f"/{number}.xml" for number in range(3)]
    site.bodies = {path: urlset(*site.pages(path[1:])) for path in slow}
    site.held = set(slow)
    seed(folder, *(f"{site.url}{path[1:]}" for path in slow))
    options = ("--concurrency", "8", "--timeout-s", "600")
    with folder.running("crawl", "spider.py", *options) as running:
        until_now("all of them to be asked for", lambda: site.held <= {*site.paths})
        site.held = set()
        assert running.wait().code == 0
    assert len(pages_of(folder)) == len(slow)


def test_of_those_that_are_large_few_are_in_hand_at_once(folder: Folder) -> None:
    with serving(SiteWithLargeOnes()) as site:
        site.bodies = {
            f"/{number}.xml": urlset(*site.pages(*(f"{number}-{n}" for n in range(100))))
            for number in range(4)
        }
        seed(folder, *(f"{site.url}{path[1:]}" for path in site.bodies))
        ended = folder.shoal("crawl", "spider.py", "--max-body-bytes", "1000")
        assert ended.code == 0, ended
        assert len(pages_of(folder)) == 400
        assert all(site.paths.count(path) == 2 for path in site.bodies)
        assert site.most_at_once == 1


class SiteWithLargeOnes(SiteWithSitemaps):
    """Counts how many sitemaps are being asked for again at the same time."""

    def __init__(self) -> None:
        super().__init__()
        self.most_at_once = 0
        self._at_once = 0

    async def _page(self, path: str) -> web.Response:
        is_again = path in self.bodies and self.paths.count(path) > 1
        self._at_once += is_again
        self.most_at_once = max(self.most_at_once, self._at_once)
        if is_again:
            await asyncio.sleep(0.1)
        self._at_once -= is_again
        return await super()._page(path)


@pytest.mark.rare
def test_a_fleet_on_redis_reads_them(
    folder: Folder, site: SiteWithSitemaps, server: RedisServer, raw: redis.Redis
) -> None:
    site.bodies = {
        "/robots.txt": b"Sitemap: /index.xml",
        "/index.xml": index("/a.xml.gz", "/moved/b.xml", "/moved/moved/b.xml", "/b.xml"),
        "/a.xml.gz": gzip.compress(urlset(*site.pages(*range(300)))),
        "/b.xml": urlset(*site.pages(*range(200, 500))),
    }
    folder.write("shoal.toml", f'frontier = "{server.url}"')
    assert seed(folder, site.url).code == 0
    ended = folder.shoal("crawl", "spider.py", "--workers", "2", "--json")
    assert ended.code == 0, ended
    assert pages_of(folder) == sorted(site.pages(*range(500)))
    assert site.paths.count("/b.xml") == 1
    sitemaps = ["robots.txt", "index.xml", "a.xml.gz", "moved/b.xml", "moved/moved/b.xml", "b.xml"]
    summary = ended.json()
    assert (summary["done"], summary["dead"], summary["dropped"]) == (500 + len(sitemaps), 0, 0)


def test_a_worker_that_is_killed_while_it_reads_one_loses_nothing(
    folder: Folder, site: SiteWithSitemaps
) -> None:
    site.bodies = {"/index.xml": index("/a.xml"), "/a.xml": urlset(*site.pages(1, 2))}
    site.held = {"/a.xml"}
    seed(folder, f"{site.url}index.xml")
    with folder.running("crawl", "spider.py") as running:
        until_now("the sitemap to be asked for", lambda: "/a.xml" in site.paths)
        running.kill_all()
    site.held.clear()
    assert crawl(folder)["exit_code"] == 0
    assert pages_of(folder) == site.pages(1, 2)


def test_indexes_without_end_end(folder: Folder, site: SiteWithSitemaps) -> None:
    site.bodies = {f"/{number}.xml": index(f"/{number + 1}.xml") for number in range(20)}
    seed(folder, f"{site.url}0.xml")
    assert crawl(folder)["dead"] == 1
    assert site.paths == [f"/{number}.xml" for number in range(MAX_LEVELS + 1)]


@pytest.mark.rare
def test_hosts_that_are_not_allowed_are_not_asked(folder: Folder, site: SiteWithSitemaps) -> None:
    site.bodies = {"/all.xml": urlset(*site.pages(1), "http://b.example/2")}
    folder.write("shoal.toml", 'allowed_hosts = ["127.0.0.1"]')
    assert crawl(folder)["exit_code"] == 0
    ended = seed(folder, "https://b.example/all.xml")
    assert (ended.code, "host not allowed" in ended.err) == (2, True)
    seed(folder, f"{site.url}all.xml")
    assert crawl(folder)["filtered"] == 1
    assert pages_of(folder) == site.pages(1)
