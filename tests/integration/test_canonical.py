"""rel=canonical as another address of a page, and simhashes, in real crawls."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web

from support.processes import Folder
from support.redis_servers import RedisServer
from support.sites import Site, html, serving

SPIDER = """
from shoal import Spider

class Pages(Spider):
    start_urls = {urls!r}
    allow_private = True
    rate = "none"
    concurrency = 1

    def parse(self, page):
        yield {{"path": page.css("h1::text").get()}}
        yield from page.follow_all("a")
"""

LINKS = {
    "/": ["/a?sort=price", "/self", "/far", "/broken", "/loop1"],
    "/a?sort=price": ["/a"],  # Its own address: links to it lead nowhere new.
    "/loop1": ["/loop2"],
}
CANONICAL = {
    "/a?sort=price": "/a",
    "/self": "/self#top",
    "/far": "http://127.0.0.2/far",
    "/broken": "http://[",
    "/loop1": "/loop2",
    "/loop2": "/loop1",
}
TEXT = " ".join(f"word{number}" for number in range(1_000))
"""Much that the pages have in common."""


async def answer(path: str) -> web.Response:
    if path == "/robots.txt":
        return html("", 404)
    links = "".join(f'<a href="{link}">x</a>' for link in LINKS.get(path, []))
    canonical = CANONICAL.get(path)
    own = f'<link rel="canonical" href="{canonical}">' if canonical else ""
    return html(f"<head>{own}</head><h1>{path}</h1>{TEXT}{links}")


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site(answer)) as site:
        yield site


def crawled(path: Path, site: Site, *options: str, **env: str) -> Folder:
    folder = Folder(path, env)
    folder.write("pages.py", SPIDER.format(urls=[site.url]))
    ended = folder.shoal("crawl", "pages.py", *options)
    assert ended.code == 0, ended
    return folder


def assert_aliases_were_not_fetched(folder: Folder, site: Site) -> None:
    assert sorted(site.paths) == ["/", "/a?sort=price", "/broken", "/far", "/loop1", "/self"]
    base = site.url.rstrip("/")
    urls = {item["path"]: item["_url"] for item in folder.export("pages")}
    assert urls == {
        "/": f"{base}/",
        "/a?sort=price": f"{base}/a",
        "/self": f"{base}/self",
        "/far": "http://127.0.0.2/far",
        "/broken": f"{base}/broken",
        "/loop1": f"{base}/loop2",
    }
    explained = folder.shoal("explain", "pages", f"{base}/a", "--json").json()
    same = f"the same page as {base}/a?sort=price, by its rel=canonical"
    assert explained["verdict"] == f"dropped: {same}"


def test_another_address_is_not_fetched(tmp_path: Path, site: Site) -> None:
    folder = crawled(tmp_path, site, "--canonical")
    assert_aliases_were_not_fetched(folder, site)


def test_nor_on_redis(tmp_path: Path, site: Site) -> None:
    with RedisServer(tmp_path / "redis") as server:
        folder = crawled(tmp_path, site, "--canonical", SHOAL_FRONTIER=server.url)
        assert_aliases_were_not_fetched(folder, site)


def test_unless_the_spider_does_not_ask_for_it(tmp_path: Path, site: Site) -> None:
    folder = crawled(tmp_path, site)
    assert {"/a", "/loop2"} < set(site.paths)
    assert len(folder.export("pages")) == 8


def test_pages_that_are_alike_are_found(tmp_path: Path, site: Site) -> None:
    folder = crawled(tmp_path, site, "--simhash")
    found = folder.shoal("results", "duplicates", "pages", "--json").json()
    assert found["pages"] == 8
    assert found["near"] >= 4
    url = found["examples"][0]["url"]
    explained = folder.shoal("explain", "pages", url)
    assert "nearly the same as" in explained.out
