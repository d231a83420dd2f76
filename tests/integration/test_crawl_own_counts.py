"""`self.count()`: exact for the fleet, whatever is tried again, in every place that tells of it."""

from __future__ import annotations

from pathlib import Path

from support.links import numbered_pages
from support.processes import Folder
from support.sites import Site, serving

SPIDER = """
import asyncio
from shoal import Drop, Retry, Spider

class Counts(Spider):
    name = "counts"
    start_urls = ["{url}"]
    rate = "none"
    allow_private = True
    tried = set()

    def request(self, request):
        self.count("requests")

    async def parse(self, page):
        self.count("pages")
        number = int(page.url.rstrip("/").rpartition("/")[2] or -1) if page.task.depth else 0
        for _ in range(number % 5):
            await asyncio.sleep(0.001)
            self.count("steps")
        if number % 10 == 1 and page.task.retry_count == 0:
            raise Retry("once more", after="1s")
        if number % 10 == 2:
            raise ValueError("broken")
        if number % 10 == 3:
            raise Drop("not wanted")
        yield page.follow_all("a")

    def on_failure(self, failure):
        self.count("failed")
"""


def test_counts_are_exact(tmp_path: Path, frontier: str) -> None:
    folder = Folder(tmp_path)
    with serving(Site(numbered_pages(40))) as site:
        folder.write("counts.py", SPIDER.format(url=site.url))
        at = ("--frontier", frontier)
        ended = folder.shoal("crawl", "counts.py", "--workers", "2", *at)
        told = folder.shoal("status", "counts", "--json", *at).json()

    assert ended.code == 3, ended.err
    # Not those of the four that raised; of those that were tried again, only the last.
    assert told["own_counts"] == {"failed": 8, "pages": 37, "requests": 37, "steps": 72}
    assert "37 pages" in ended.out
