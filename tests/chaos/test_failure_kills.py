"""Workers die in the middle of a crawl whose tasks fail: what `on_failure` gives and what is
counted is kept once, with the end of the task."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from aiohttp import web

from support.crashes import has_crashed
from support.kills import kill_workers
from support.links import GatedSite
from support.processes import Folder, seeded_random
from support.rarely import first_then_rare
from support.redis_servers import RedisServer
from support.sites import html, serving

EACH, KILLS, WORKERS = 20, 3, 2
KINDS = ("gone", "broken", "busy", "unwanted")
REQUESTS = 1 + EACH * (2 * len(KINDS) + 1)
"""Each page fails, and leads to another one; those that are busy are asked for twice."""
SPIDER = """
from shoal import Drop, Item, Retry, Spider

class Ended(Item, key="url"):
    url: str
    how: str

class Fails(Spider):
    start_urls = ["{url}"]
    rate = "none"
    allow_private = True
    max_retries = 1
    lease_s = 3600

    def parse(self, page):
        for kind in {kinds}:
            yield page.follow_all(f'a[href^="/{{kind}}/"]', handler=kind)

    def gone(self, page):
        raise AssertionError("a 404 has no handler")

    def broken(self, page):
        self.count("broken")    # Not counted: the handler raises.
        raise ValueError("broken")

    def busy(self, page):
        raise Retry("busy")

    def unwanted(self, page):
        self.count("unwanted")
        raise Drop("unwanted")

    def instead(self, page):
        self.count("instead")
        yield Ended(url=page.url, how="instead")

    def on_failure(self, failure):
        self.count("failed")
        yield Ended(url=failure.url, how=failure.reason)
        yield failure.follow("/instead" + failure.url.removeprefix("{url}"), handler="instead")
"""


class FailingSite(GatedSite):
    """Links to pages of each kind. Answers only as many requests as are allowed."""

    def __init__(self) -> None:
        super().__init__(0)
        self._page = self._page_of_a_kind

    async def _page_of_a_kind(self, path: str) -> web.Response:
        links = (f'<a href="/{kind}/{n}">x</a>' for kind in KINDS for n in range(EACH))
        status = 404 if path.startswith("/gone/") else 200
        return html("".join(links) if path == "/" else "", status)


@pytest.mark.parametrize("on_redis", first_then_rare(False, True))
def test_killed_workers_lose_no_failure_and_count_none_twice(
    tmp_path: Path, redis_server: RedisServer, on_redis: bool
) -> None:
    at = ("--frontier", redis_server.url) if on_redis else ()
    redis_server.client().flushall()
    folder = Folder(tmp_path)
    random = seeded_random("kills of workers whose tasks fail")
    with serving(FailingSite()) as site:
        spider = SPIDER.format(url=site.url.removesuffix("/"), kinds=KINDS)
        folder.write("fails.py", spider)
        with folder.running("crawl", "fails.py", "--workers", str(WORKERS), *at) as crawl:
            moments = random.sample(range(EACH, REQUESTS), KILLS)
            kill_workers(crawl, site, WORKERS, moments, random)
            ended = crawl.wait()
        told = folder.shoal("status", "fails", "--json", *at).json()
    assert ended.code == 3, ended
    assert not has_crashed(ended.err), ended.err
    assert (told["done"], told["dead"], told["dropped"]) == (1 + 4 * EACH, 2 * EACH, 2 * EACH)
    assert told["own_counts"] == {"failed": 4 * EACH, "instead": 4 * EACH, "unwanted": EACH}
    assert Counter(row["how"] for row in folder.export("fails")) == {
        "HTTP 404": EACH,
        "ValueError: broken": EACH,
        "the spider asks for another try: busy": EACH,
        "the spider drops it: unwanted": EACH,
        "instead": 4 * EACH,
    }
