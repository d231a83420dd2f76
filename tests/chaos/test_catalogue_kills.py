"""kill -9 of workers while they search for the end of a catalogue."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from aiohttp import web

from support.catalogues import ListingSite, products_of
from support.processes import Folder, Running
from support.sites import serving
from support.until import until, until_now

PAGES = 21
MOMENTS = (8, 20)
"""Page numbers that are probed on the way up, and on the way back from beyond the end."""

SPIDER = """
from shoal import Catalogue, Spider

class Shop(Spider):
    catalogue = Catalogue({template!r}, items="li")
    rate = "none"
    robots = False
    allow_private = True
    lease_s = 3600

    def parse(self, page):
        yield page.follow_all("li a", handler=self.product)

    def product(self, page):
        yield {{"product": page.css("h1::text").get()}}
"""


class HeldSite(ListingSite):
    """Holds back the answers for certain pages."""

    def __init__(self) -> None:
        super().__init__(PAGES)
        self.held = {f"/catalog?page={page}" for page in MOMENTS}

    async def _answer_in_time(self, path: str) -> web.Response:
        await until(f"{path} to be let go", lambda: path not in self.held)
        return self.page(path)


def kill_at(crawl: Running, site: HeldSite, path: str) -> None:
    """kill -9 of the workers while one of them waits for a page."""
    until_now(path, lambda: path in site.paths)
    for worker in crawl.workers():
        os.kill(worker, signal.SIGKILL)
    site.held.remove(path)


@pytest.mark.rare
def test_workers_that_die_while_they_probe_lose_no_page(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    with serving(HeldSite()) as site:
        folder.write("shop.py", SPIDER.format(template=site.template))
        with folder.running("crawl", "shop.py") as crawl:
            for page in MOMENTS:
                kill_at(crawl, site, f"/catalog?page={page}")
            ended = crawl.wait()
        assert ended.code == 0, ended
        assert set(range(1, PAGES + 1)) <= set(site.listed())
        assert len([page for page in site.listed() if page in MOMENTS]) >= 2 * len(MOMENTS)
    stats = folder.stats("shop")
    assert (stats.state, stats.leased, stats.dead) == ("finished", 0, 0)
    assert stats.lost >= len(MOMENTS)
    assert {item["product"] for item in folder.export("shop")} == products_of(PAGES)
