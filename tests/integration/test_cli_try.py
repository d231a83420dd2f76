"""`shoal try`: one page as a crawl would see it; the stores of crawls stay as they are."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from support.processes import Folder
from support.sites import Site, html, serving
from support.until import until_now

SPIDER = """
from shoal import Item, Retry, Spider

class Lamp(Item, key="sku"):
    sku: str
    price: float

class Shop(Spider):
    start_urls = ["{url}"]
    allow_private = True
    max_depth = 1
    expect = "h1"

    def request(self, request):
        request.headers["X-Signed"] = "yes"

    def item(self, item, page):
        if isinstance(item, Lamp):
            item.sku = item.sku.upper()
        return item

    def parse(self, page):
        yield page.follow_all("a", handler=self.lamp, meta={{"shelf": 3}})
        yield page.follow("/new", handler="lmap")

    def lamp(self, page):
        yield Lamp(sku="a1", price=float(page.css("b::text").get()))
        yield Lamp(sku=page.meta.get("sku", ""), price=2.0)

    def again(self, page):
        raise Retry("busy")

    def endless(self, page):
        print("begun", flush=True)
        while True:
            pass

    def many(self, page):
        for number in range(30_000):
            yield page.follow(f"/{{number}}")
        for number in range(100):
            yield {{"number": number}}

    def odd(self, page):
        yield {{"title": page.css("h1::text").get()}}
        yield page.follow("/x?\\x1b[31m")
"""
PAGES = {
    "/": '<h1>Shop</h1><a href="/lamp">1</a><a href="/lamp#top">1</a><a href="/">home</a>'
    '<a href="http://127.0.0.1:1/">other</a><a href="/private/1">no</a>',
    "/lamp": "<h1>Lamp</h1><b>12.50</b>",
    "/sold": "<h1>Lamp</h1><b>sold out</b>",
    "/block": "<p>Are you human?</p>",
    "/odd": "<h1>\x1b]0;owned\x07\u202e</h1>",
}


async def answer(path: str) -> web.Response:
    if path == "/robots.txt":
        return web.Response(text="User-agent: *\nDisallow: /private/\nCrawl-delay: 60")
    if path == "/old":
        return web.Response(status=301, headers={"Location": "/lamp"})
    return html(PAGES[path]) if path in PAGES else html("gone", 404)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with serving(Site(answer)) as site:
        yield site


@pytest.fixture
def folder(tmp_path: Path, site: Site) -> Folder:
    folder = Folder(tmp_path, {"XDG_CACHE_HOME": str(tmp_path / "cache")})
    folder.write("shop.py", SPIDER.format(url=site.url))
    site.hits.clear()
    site.robots_hits.clear()
    return folder


def tried(folder: Folder, *args: str) -> Any:
    return folder.shoal("try", "shop.py", *args, "--json").json()


def test_the_first_page_and_what_would_become_of_its_links(folder: Folder, site: Site) -> None:
    answer = tried(folder)
    assert (answer["url"], answer["status"], answer["handler"]) == (site.url, 200, "parse")
    fates = {task["url"].removeprefix(site.url[:-1]): task["fate"] for task in answer["tasks"]}
    assert fates == {
        "/lamp": "twice on this page",
        "/": "this page itself",
        "http://127.0.0.1:1/": "new",
        "/private/1": "robots.txt forbids it",
        "/new": "no handler 'lmap' in Shop",
    }
    assert [task["meta"] for task in answer["tasks"][:1]] == [{"shelf": 3}]
    assert answer["new"] == sum(task["fate"] == "new" for task in answer["tasks"])
    assert not list(folder.path.glob("*.db*")), "something was stored"
    assert (site.paths, len(site.robots_hits)) == (["/"], 1)


def test_items_as_they_would_be_stored_and_those_that_would_not(folder: Folder, site: Site) -> None:
    ended = folder.shoal("try", "shop.py", f"{site.url}old", "--handler", "lamp")
    assert ended.code == 0, ended
    assert f"HTTP 301 to {site.url}lamp" in ended.out
    assert '{"sku":"A1","price":12.5}' in ended.out
    assert "sku: the key is empty" in ended.out
    assert "lamp gave 1 item, 1 rejected, no tasks" in ended.out
    noted = tried(folder, f"{site.url}lamp", "--handler", "lamp", "--meta", "sku=b2")
    assert [item["key"] for item in noted["items"]] == ["A1", "B2"]


def test_an_exception_is_shown_where_it_is_the_users(folder: Folder, site: Site) -> None:
    ended = folder.shoal("try", "shop.py", f"{site.url}sold", "--handler", "lamp")
    assert ended.code == 1
    frames = [line for line in ended.out.splitlines() if line.startswith("  File")]
    assert len(frames) == 1, ended.out
    assert "shop.py" in frames[0]
    assert "ValueError: could not convert string to float: 'sold out'" in ended.out
    assert ended.err == ""


@pytest.mark.parametrize(
    ("path", "more", "why"),
    [
        ("private/1", (), "robots.txt forbids it (a crawl would drop it)"),
        ("block", (), "a crawl would try it again"),
        ("nothing", (), "HTTP 404 (a crawl would drop it)"),
        ("", ("--no-allow-private",), "127.0.0.1 is a private address"),
        ("lamp", ("--handler", "again"), "busy (a crawl would try it again"),
    ],
)
def test_a_page_that_cannot_be_had(
    folder: Folder, site: Site, path: str, more: tuple[str, ...], why: str
) -> None:
    ended = folder.shoal("try", "shop.py", f"{site.url}{path}", *more)
    assert ended.code == 1
    assert why in ended.out, ended


@pytest.mark.rare
def test_mistakes_are_one_line(folder: Folder, site: Site) -> None:
    for args, why in [
        (("nothing.py",), "no such file"),
        (("shop.py", "ftp://x/"), "not an http(s) URL"),
        (("shop.py", site.url, "--handler", "lmap"), "did you mean lamp?"),
        (("shop.py", site.url, "--meta", "x"), "--meta: write key=value"),
        (("shop.py", site.url, "--from-archive"), "no crawls here"),
    ]:
        ended = folder.shoal("try", *args)
        assert (ended.code, ended.err.count("\n")) == (2, 1), ended
        assert why in ended.err


def test_tables_are_cut_and_say_so(folder: Folder, site: Site) -> None:
    ended = folder.shoal("try", "shop.py", site.url, "--handler", "many")
    assert len(ended.out.splitlines()) < 120
    assert "10,000 links of it are not followed (max_links_per_page)" in ended.out
    assert "and 19,950 more tasks (--json shows all)" in ended.out
    assert "and 80 more items (--json shows all)" in ended.out


def test_nothing_of_a_page_reaches_the_terminal_as_an_order(folder: Folder, site: Site) -> None:
    for more in ((), ("--json",)):
        ended = folder.shoal("try", "shop.py", f"{site.url}odd", "--handler", "odd", *more)
        assert ended.code == 0, ended
        assert not {"\x1b", "\x07", "\u202e"} & set(ended.out), ended.out


def test_the_cache_asks_the_site_once(folder: Folder, site: Site) -> None:
    args = (f"{site.url}lamp", "--handler", "lamp", "--cache")
    first, second = tried(folder, *args), tried(folder, *args)
    assert (site.paths, len(site.robots_hits)) == (["/lamp"], 1)
    assert first["items"] == second["items"]
    kept = folder.path / "cache" / "shoal" / "pages"
    assert (first["from"], str(kept) in second["from"]) == (f"the site, kept in {kept}", True)
    assert second["from"].startswith("the cache in ")


def test_a_page_from_the_archive(folder: Folder, site: Site) -> None:
    # Its robots.txt asks for a minute between two requests.
    crawl = ("crawl", "shop.py", "--rate", "none", "--no-robots", "--max-retries", "0")
    assert folder.shoal(*crawl, "--archive", "file:raw").code == 3
    site.hits.clear()
    answer = tried(folder, f"{site.url}lamp", "--from-archive")
    assert (answer["handler"], answer["items"][0]["key"]) == ("lamp", "A1")
    assert answer["from"].startswith("the archive, as it was at ")
    assert site.paths == []
    missing = folder.shoal("try", "shop.py", f"{site.url}never", "--from-archive")
    assert (missing.code, "has no page" in missing.err) == (1, True)


def test_a_handler_without_end_ends_by_ctrl_c(folder: Folder, site: Site) -> None:
    with folder.running("try", "shop.py", site.url, "--handler", "endless") as running:
        out = next(folder.path.glob("*.out"))
        until_now("the handler", lambda: "begun" in out.read_text())
        running.send(signal.SIGINT)
        assert running.wait().code == 130


@pytest.mark.rare
def test_watching_tries_again_when_the_spider_changes(folder: Folder, site: Site) -> None:
    watch = ("try", "shop.py", f"{site.url}lamp", "--handler", "lamp", "--watch")
    with folder.running(*watch) as running:
        out = next(folder.path.glob("*.out"))
        until_now("the first time", lambda: "waiting for changes" in out.read_text())
        folder.write("shop.py", SPIDER.format(url=site.url).replace("upper()", "title() + '!'"))
        until_now("the second time", lambda: '"sku":"A1!"' in out.read_text())
        running.send(signal.SIGINT)
        assert running.wait().code == 130
    assert site.paths == ["/lamp"]
