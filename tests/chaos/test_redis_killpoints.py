"""kill -9 of a worker at every stage of the pipeline: it is replaced, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web

from support.crashes import has_crashed
from support.killpoints import MARKER, POINTS, environment_of
from support.links import numbered_pages, paths_of, put_spider
from support.processes import Folder, seeded_random
from support.redis_chaos import (
    DURABLE,
    assert_links_are_complete,
    assert_losses_explain_repeats,
)
from support.redis_servers import RedisServer
from support.sites import Site, html, serving
from support.until import until

PAGES = 40
LINKED = 35
"""How many pages the front page links to. The others are seeds in the inbox."""
HELD = "/1"
INBOX = "shoal:links:inbox"

SPIDER = """
from shoal.frontier.redis import inbox
from support.killpoints import set_trap
inbox.LOCK_MS = 1000
set_trap()
from links import Links
"""

MOST_TIMES = {
    **dict.fromkeys(("leased", "saving", "saved", "finished", "renewed", "beaten"), 2),
    **dict.fromkeys(("collecting", "collected"), 1),
}
"""How often at least one of two workers surely passes a point. There are only few batches."""
ANY_PAGE = 12

LEASE_S = {"renewed": 3.0}
"""Lease times by point. The default outlasts the test, so leases must be given back at once."""

OFTEN = ("leased", "saved", "finished")
"""The points that every change tries."""


class HeldSite(Site):
    """Holds back one page until a worker was killed, so that no crawl ends before that."""

    def __init__(self, folder: Path) -> None:
        super().__init__(self._answer_or_hold)
        self._marker = folder / MARKER
        self._pages = numbered_pages(PAGES)

    async def _answer_or_hold(self, path: str) -> web.Response:
        if path == "/":
            return html("".join(f'<a href="{link}"></a>' for link in paths_of(LINKED)[1:]))
        if path == HELD:
            await until("a worker to be killed", self._marker.exists)
        return await self._pages(path)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with RedisServer(tmp_path_factory.mktemp("redis"), *DURABLE) as server:
        yield server


@pytest.mark.parametrize(
    "point",
    [point if point in OFTEN else pytest.param(point, marks=pytest.mark.rare) for point in POINTS],
)
def test_a_worker_killed_there_loses_nothing(
    tmp_path: Path, server: RedisServer, point: str
) -> None:
    number = seeded_random(point).randint(1, MOST_TIMES.get(point, ANY_PAGE))
    folder = Folder(tmp_path, {"SHOAL_FRONTIER": server.url})
    folder.write("trapped.py", SPIDER)
    with server.client() as client, serving(HeldSite(tmp_path)) as site:
        client.flushall()
        client.lpush(INBOX, *(site.url + path[1:] for path in paths_of(PAGES)[LINKED + 1 :]))
        put_spider(folder, [site], rate="none", concurrency=2, lease_s=LEASE_S.get(point, 3600.0))
        command = ("crawl", "trapped.py:Links", "--workers", "2")
        ended = folder.shoal(*command, env=environment_of(point, number))
        assert ended.code == 0, ended
        assert ended.err.count("a worker died (signal SIGKILL); starting another") == 1, ended
        assert not has_crashed(ended.err), ended.err
        stats = assert_links_are_complete(folder, [site], PAGES)
        assert_losses_explain_repeats([site], stats)
