"""Crawls that run for as long as a test needs: of slow hosts with many pages."""

from __future__ import annotations

from asyncio import sleep
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import web

from support.processes import Folder
from support.sites import Site, html, serving
from support.until import until_now

PAGES = 40_000
ENOUGH = 205
"""Number of pages after which there is enough data for advice."""
LATENCY_S = 1.0
"""The time that answers take: so long that it is the only limit even on a busy machine. Answers
arrive together, so there are few batches."""
SPIDER = """
from shoal import Spider

class Slow(Spider):
    name = "{name}"
    allow_private = True
    robots = False

    def start(self):
        for number in range({pages}):
            for host in {hosts}:
                yield f"http://{{host}}/{{number}}"

    def parse(self, page):
        pass
"""


class SlowSite(Site):
    """A site with several hosts, which take a while to answer."""

    notices_hang_ups = True

    def __init__(self, hosts: int) -> None:
        super().__init__(self._slowly)
        self.addresses = [f"127.0.0.{number}" for number in range(1, hosts + 1)]

    async def _slowly(self, path: str) -> web.Response:
        await sleep(LATENCY_S)
        return html("<h1>A page</h1>")

    @property
    def hosts(self) -> list[str]:
        """The names of the hosts, as in tasks."""
        return [f"{address}:{self.port}" for address in self.addresses]


@contextmanager
def crawling(folder: Folder, hosts: int, *options: str, name: str = "shop") -> Iterator[SlowSite]:
    """Run a crawl of `hosts` slow hosts, until it has enough data for advice."""
    with serving(SlowSite(hosts)) as site:
        text = SPIDER.format(name=name, hosts=site.hosts, pages=PAGES // hosts)
        folder.write(f"{name}.py", text)
        with folder.running("crawl", f"{name}.py", *options) as process:
            until_now("enough pages", lambda: len(site.hits) > ENOUGH or process.has_ended())
            yield site
