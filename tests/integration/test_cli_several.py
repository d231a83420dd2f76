"""`shoal crawl` of several spiders: side by side, with a table of how they ended."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.links import GatedSite, numbered_pages
from support.processes import Folder
from support.sites import Site, serving
from support.until import until_now

SPIDER = """
from shoal import Spider

class {name}(Spider):
    start_urls = ["{url}"]
    rate = "none"
    allow_private = True
    category: str = "all"

    def parse(self, page):
        yield {{"url": page.url, "category": self.category}}
        yield page.follow_all("a")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site(numbered_pages(6))) as site:
        yield site


def write_shops(folder: Folder, site: Site) -> None:
    (folder.path / "shops").mkdir()
    for name in ("Books", "Toys"):
        folder.write(f"shops/{name.lower()}.py", SPIDER.format(name=name, url=site.url))


def test_all_spiders_of_a_folder(folder: Folder, site: Site) -> None:
    write_shops(folder, site)
    folder.write("shoal.toml", "[spider.toys]\nmax_pages = 2\n")
    ended = folder.shoal("crawl", "shops", "--all", "-a", "category=used")
    assert ended.code == 0, ended.err
    rows = [line.split()[:6] for line in ended.out.splitlines()[1:]]
    assert rows[0] == ["books", "finished", "7", "0", "0", "7"]
    assert rows[1][:4] == ["toys", "finished", "2", "0"]
    assert {row["category"] for row in folder.export("books")} == {"used"}

    # One that fails keeps no other from running, and the worst exit code is that of all.
    folder.write("shops/broken.py", "import nothing_of_the_kind\nclass Broken(Spider): pass\n")
    again = folder.shoal(
        *("crawl", "shops/books.py", "shops/toys.py", "--parallel", "1", "--json"),
        *("-a", "category=new"),
    )
    assert again.code == 2
    assert ["error" in each for each in again.json()] == [True, True]
    ended = folder.shoal("crawl", "shops", "--all", "-a", "category=used", "--json")
    assert ended.code == 2
    assert [each["exit_code"] for each in ended.json()] == [0, 0]
    assert "shoal: shops/broken.py:1: " in ended.err


@pytest.mark.rare
def test_a_signal_stops_them_all(folder: Folder) -> None:
    gated = GatedSite(20)
    gated.allowed = 8
    with serving(gated) as site:
        write_shops(folder, site)
        with folder.running("crawl", "shops", "--all") as crawling:
            until_now("some pages of both", lambda: len(site.paths) >= 6)
            crawling.send(signal.SIGTERM)
            assert crawling.wait().code == 1
    assert {folder.stats(crawl).state for crawl in ("books", "toys")} == {"running"}
