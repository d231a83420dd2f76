"""`-a`: a spider is told something where the crawl begins, and workers elsewhere know it."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.coordinators import NEVER, Office
from support.links import numbered_pages
from support.processes import Folder
from support.sites import Site, serving
from support.until import until_now

SPIDER = """
from shoal import Item, Spider

class Page(Item, key="url"):
    url: str
    category: str
    limit: int

class Shop(Spider):
    name = "shop-{{category}}"
    rate = "none"
    allow_private = True
    category: str
    limit: int = 10

    def start(self):
        yield "{url}"

    def parse(self, page):
        yield Page(url=page.url, category=self.category, limit=self.limit)
        yield from page.follow_all("a")
"""
TOLD = ("-a", "category=books", "-a", "limit=50")


def test_arguments_are_kept_with_the_crawl(tmp_path: Path, frontier: str) -> None:
    here, there = Folder(tmp_path / "here"), Folder(tmp_path / "there")
    with serving(Site(numbered_pages(5))) as site:
        for folder in (here, there):
            folder.path.mkdir()
            folder.write("shop.py", SPIDER.format(url=site.url))
        at = ("--frontier", frontier)

        ended = here.shoal("crawl", "shop.py", *TOLD, *at, "--json")
        assert ended.code == 0, ended.err
        assert ended.json()["crawl"] == "shop-books"
        assert ended.json()["rules"]["args"] == {"category": "books", "limit": 50}
        status = here.shoal("status", "shop-books", *at)
        assert "category=books, limit=50" in status.out

        other = here.shoal("crawl", "shop.py", "-a", "category=books", *at)
        assert other.code == 2
        assert "was told category=books, limit=50, and now category=books:" in other.err

        # Somebody else takes the crawl up again, and a worker elsewhere knows no arguments.
        assert (
            here.shoal("seed", "shop-books", site.url.replace("127.0.0.1", "localhost"), *at).code
            == 0
        )
        reader = there.shoal("worker", "shop.py", "--name", "shop-books", "--until-finished", *at)
        assert reader.code == 0, reader.err
        nobody = there.shoal("worker", "shop.py", *at)
        assert nobody.code == 2
        assert "which crawl is it? Its name is shop-{category}" in nobody.err

    for folder in (here, there):
        rows = folder.export("shop-books")
        assert {(row["category"], row["limit"]) for row in rows} == {("books", 50)}


SCHEDULED = (
    SPIDER
    + """
    def opened(self):
        self.log("opened")

    def closed(self, summary):
        self.log(f"closed {{summary.stats.done}}")

    def log(self, line):
        with open("log", "a") as log:
            log.write(f"{{line}} {{self.category}}\\n")
"""
)


@pytest.mark.rare
def test_a_schedule_tells_its_spider(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    office = Office(folder)
    with serving(Site(numbered_pages(3))) as site:
        folder.write("links.py", SCHEDULED.format(url=site.url))
        office.schedule(NEVER, 'args = { category = "books", limit = 5 }')
        with folder.running("serve") as coordinator, folder.running("worker"):
            office.leads(coordinator)
            crawl = office.begin()
            (run,) = until_now("the run's end", office.past)
            log = tmp_path / "log"
            until_now("closed", lambda: "closed" in log.read_text())
        assert (run.state, run.done) == ("finished", 4)
    assert log.read_text() == "opened books\nclosed 4 books\n"
    assert {(row["category"], row["limit"]) for row in folder.export(crawl)} == {("books", 5)}
