"""Handlers that do not return: their process ends, or at least logs where it is stuck."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.config import Rules
from shoal.frontier.values import Control
from support.links import numbered_pages
from support.processes import Folder
from support.scrapy_projects import ADDON, Project
from support.sites import Site, serving

SPIDER = """
import time
from itertools import repeat
from pathlib import Path
from shoal import Spider, crawl

def stuck_here():
    for _ in {times}:
        pass

class Stuck(Spider):
    start_urls = ["{url}"]
    rate = "none"
    allow_private = True
    lease_s = {lease_s}

    def parse(self, page):
        stuck_here()
        yield {{"url": page.url}}

if __name__ == "__main__":
    assert crawl(Stuck).stats.done == 1
"""

FOR_EVER = "repeat(None)"
SAID = "shoal: this process has stood still for 1 s, so it ends:\n"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site(numbered_pages(1))) as site:
        yield site


def write_spider(folder: Folder, site: Site, *, lease_s: float, times: str) -> Path:
    return folder.write("stuck.py", SPIDER.format(url=site.url, lease_s=lease_s, times=times))


def begin(folder: Folder, site: Site, lease_s: float) -> None:
    """Begin a crawl with this lease time, whatever its workers have set."""
    rules = Rules(rate="none", robots=False, lease_s=lease_s)
    asyncio.run(folder.ask_frontier(lambda frontier: frontier.start("stuck", rules)))
    assert folder.shoal("seed", "stuck", site.url).code == 0
    asyncio.run(folder.ask_frontier(lambda frontier: frontier.control("stuck", Control.SEAL)))


def test_a_worker_without_a_parent_ends_and_says_where_it_stood(folder: Folder, site: Site) -> None:
    write_spider(folder, site, lease_s=300, times=FOR_EVER)
    begin(folder, site, lease_s=0.5)
    with folder.running("worker", "stuck.py") as worker:
        ended = worker.wait()
    assert ended.code == 1
    assert ended.err.count(SAID) == 1
    assert "stuck_here" in ended.err.partition(SAID)[2]


@pytest.mark.rare
@pytest.mark.parametrize("workers", ["1", "2"])
def test_it_is_the_crawl_that_says_how_long_a_lease_is(
    folder: Folder, site: Site, workers: str
) -> None:
    write_spider(folder, site, lease_s=0.1, times="map(time.sleep, [1])")
    begin(folder, site, lease_s=300)
    ended = folder.shoal("worker", "stuck.py", "--until-finished", "--workers", workers)
    assert ended.code == 0, ended
    assert "stood still" not in ended.err
    assert folder.stats("stuck").done == 1


def test_a_crawl_with_one_process_ends_with_a_dead_task(folder: Folder, site: Site) -> None:
    write_spider(folder, site, lease_s=0.5, times=FOR_EVER)
    ended = folder.shoal("crawl", "stuck.py", "--max-losses", "3")
    assert ended.code == 3
    assert ended.err.count(SAID) == ended.err.count("in stuck_here") == 3
    (dead,) = folder.shoal("dead", "list", "stuck", "--json").json()
    assert dead["reason"] == "poison: 3 workers died with it"


SCRAPY_SPIDER = """
import os
import scrapy

class Stuck(scrapy.Spider):
    name = "stuck"
    start_urls = os.environ["SITES"].split(",")

    def parse(self, response):
        self.stuck_here()

    def stuck_here(self):
        while True:
            pass
"""


@pytest.mark.rare
def test_so_does_one_of_scrapys(tmp_path: Path, site: Site) -> None:
    project = Project(tmp_path / "machine", SCRAPY_SPIDER, ADDON, sites=[site.url])
    shoal = project.commands.shoal
    ended = shoal("crawl", "scrapy:stuck", "--lease-s", "0.5", "--max-losses", "2")
    assert ended.code == 3, ended
    assert ended.err.count(SAID) == ended.err.count("in stuck_here") == 2
    (dead,) = shoal("dead", "list", "stuck", "--json").json()
    assert dead["reason"] == "poison: 2 workers died with it"


def test_a_program_of_the_users_goes_on(folder: Folder, site: Site) -> None:
    until_said = "iter(lambda: 'stuck_here' in Path('0.err').read_text(), True)"
    script = write_spider(folder, site, lease_s=0.5, times=until_said)
    with folder.running(script, program=sys.executable) as program:
        ended = program.wait()
    assert ended.code == 0, ended
    assert "stuck_here" in ended.err
