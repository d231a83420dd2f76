"""Crawls that are under way for as long as a test needs them: of slow hosts with many pages."""

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
"""After so many pages there is enough to go by."""
LATENCY_S = 1.0
"""So long that a busy machine has no other limit: answers come together, and so are few batches."""
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
    """So many hosts, which take a while to answer."""

    notices_hang_ups = True

    def __init__(self, hosts: int) -> None:
        super().__init__(self._slowly)
        self.addresses = [f"127.0.0.{number}" for number in range(1, hosts + 1)]

    async def _slowly(self, path: str) -> web.Response:
        await sleep(LATENCY_S)
        return html("<h1>A page</h1>")

    @property
    def hosts(self) -> list[str]:
        """Their names, as tasks have them."""
        return [f"{address}:{self.port}" for address in self.addresses]


@contextmanager
def crawling(folder: Folder, hosts: int, *options: str, name: str = "shop") -> Iterator[SlowSite]:
    """A crawl of so many hosts, which has done so much that there is advice."""
    with serving(SlowSite(hosts)) as site:
        text = SPIDER.format(name=name, hosts=site.hosts, pages=PAGES // hosts)
        folder.write(f"{name}.py", text)
        with folder.running("crawl", f"{name}.py", *options) as process:
            until_now("enough pages", lambda: len(site.hits) > ENOUGH or process.has_ended())
            yield site
