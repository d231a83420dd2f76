"""Handlers that do not return: their process ends, or at least says where it stands."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.config import Rules
from support.links import numbered_pages
from support.processes import Folder
from support.sites import Site, serving

SPIDER = """
from pathlib import Path
from shoal import Spider, crawl

def stuck_here():
    while {condition}:
        pass

class Stuck(Spider):
    start_urls = ["{url}"]
    rate = "none"
    allow_private = True
    lease_s = 0.2

    def parse(self, page):
        stuck_here()
        yield {{"url": page.url}}

if __name__ == "__main__":
    assert crawl(Stuck).stats.done == 1
"""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site(numbered_pages(1))) as site:
        yield site


def test_a_worker_without_a_parent_ends_and_says_where_it_stood(folder: Folder, site: Site) -> None:
    folder.write("stuck.py", SPIDER.format(url=site.url, condition="True"))
    rules = Rules(rate="none", robots=False, lease_s=0.2)
    asyncio.run(folder.ask_frontier(lambda frontier: frontier.start("stuck", rules)))
    assert folder.shoal("seed", "stuck", site.url).code == 0
    with folder.running("worker", "stuck.py") as worker:
        ended = worker.wait()
    assert ended.code == 1
    assert "stuck_here" in ended.err


def test_a_program_of_the_users_goes_on(folder: Folder, site: Site) -> None:
    said = "'stuck_here' not in Path('0.err').read_text()"
    script = folder.write("stuck.py", SPIDER.format(url=site.url, condition=said))
    with folder.running(script, program=sys.executable) as program:
        ended = program.wait()
    assert ended.code == 0, ended
    assert "stuck_here" in ended.err
