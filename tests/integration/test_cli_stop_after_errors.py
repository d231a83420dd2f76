"""A spider that raises and raises: its crawl pauses, says why, and goes on once it is mended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web

from support.processes import Folder
from support.sites import Site, html, serving

PAGES = 400
LIMIT = 5
SPIDER = """
from shoal import Drop, Spider

class Shop(Spider):
    start_urls = [%r]
    rate = "none"
    stop_after_errors = 5

    def parse(self, page):
        yield page.follow_all("a", handler=self.product)

    def product(self, page):
        number = int(page.url.rpartition("/")[2])
        if number == 0:
            raise Drop("sold out")
        yield {"number": number, "title": page.%s}
"""


async def answer(path: str) -> web.Response:
    if path == "/":
        return html("".join(f"<a href=/p/{number}>.</a>" for number in range(PAGES)))
    return html("<h1>Lamp</h1>", 404 if path == "/robots.txt" else 200)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with serving(Site(answer)) as site:
        yield site


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_crawl_pauses_and_goes_on_when_its_spider_is_mended(
    tmp_path: Path, site: Site, workers: str
) -> None:
    folder = Folder(tmp_path, {"SHOAL_ALLOW_PRIVATE": "yes"})
    folder.write("shop.py", SPIDER % (site.url, "title.get()"))
    crawl = ("crawl", "shop.py", "--workers", workers)
    stopped = folder.shoal(*crawl, "--json")
    assert stopped.code == 1, stopped
    summary = stopped.json()
    assert summary["state"] == "paused"
    assert LIMIT <= summary["dead"] < PAGES - 1
    assert "'shop' is paused: " in stopped.err
    assert "× AttributeError at shop.py:16 in product" in stopped.err

    folder.write("shop.py", SPIDER % (site.url, "css('h1::text').get()"))
    assert folder.shoal("resume", "shop").code == 0
    assert folder.shoal("dead", "retry", "shop").code == 0
    ended = folder.shoal(*crawl, "--json")
    assert ended.code == 0, ended
    told = ended.json()
    assert (told["state"], told["dead"], told["dropped"]) == ("finished", 0, 1)
    assert told["items"] == PAGES - 1


def test_the_log_has_what_hooks_raise_and_nothing_of_what_is_dropped(
    tmp_path: Path, site: Site
) -> None:
    folder = Folder(tmp_path, {"SHOAL_ALLOW_PRIVATE": "yes"})
    folder.write(
        "shop.py",
        "from shoal import Drop, Spider\n"
        "class Shop(Spider):\n"
        f"    start_urls = [{site.url + '/p/1'!r}, {site.url + '/p/2'!r}]\n"
        "    def request(self, request):\n"
        "        if request.url.endswith('1'):\n"
        "            1 / 0\n"
        "    def parse(self, page):\n"
        "        raise Drop('sold out')\n",
    )
    ended = folder.shoal("crawl", "shop.py", "--rate", "none")
    assert ended.code == 3, ended
    assert "ZeroDivisionError at shop.py:6 in request" in ended.err
    assert "  1 / 0\n" in ended.err
    assert "sold out" not in ended.err
    for ours in ("visitor.py", "outgoing.py", "harvest.py"):
        assert ours not in ended.err
