"""SIGTERM and Ctrl-C: the first drains, the second stops at once."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web

from support.crashes import has_crashed
from support.links import numbered_pages, put_spider
from support.processes import Folder, catches, is_alive
from support.sites import Site, serving
from support.until import in_time, until_now

PAGES = 200
HANGS = "/7"
STOPPING = "stopping: finishing what is in hand; once more stops at once"


class HangingSite(Site):
    """Does not answer one of its pages while `hangs` is true."""

    def __init__(self) -> None:
        super().__init__(self._answer_or_hang)
        self._page = numbered_pages(PAGES)
        self.hangs = True

    async def _answer_or_hang(self, path: str) -> web.Response:
        if path == HANGS and self.hangs:
            await in_time("the client to give up", asyncio.Event().wait())
        return await self._page(path)


@pytest.fixture
def site() -> Iterator[HangingSite]:
    with serving(HangingSite()) as site:
        yield site


@pytest.fixture
def folder(tmp_path: Path, site: HangingSite) -> Folder:
    folder = Folder(tmp_path)
    put_spider(folder, [site], rate="40/s", lease_s=3600)
    return folder


def the_rest(folder: Folder, site: HangingSite) -> Counter[str]:
    """Crawl to the end. Returns how often each page was requested in total."""
    site.hangs = False
    assert folder.shoal("crawl", "links.py", "--rate", "none").code == 0
    assert len(folder.export("links")) == PAGES + 1
    return Counter(site.paths)


def test_sigterm_finishes_or_hands_back_what_is_in_hand(folder: Folder, site: HangingSite) -> None:
    with folder.running("crawl", "links.py", "--workers", "3") as crawl:
        until_now("a request that hangs", lambda: HANGS in site.paths)
        crawl.send(signal.SIGTERM)
        ended = crawl.wait()
    assert ended.code == 1, ended
    assert STOPPING in ended.err
    assert not has_crashed(ended.err), ended.err
    assert "to continue: run this command" in ended.out
    stats = folder.stats("links")
    assert (stats.state, stats.leased, stats.lost) == ("running", 0, 0)
    assert stats.waiting > 0
    asked = the_rest(folder, site)
    assert asked.pop(HANGS) == 2
    assert set(asked.values()) == {1}


def test_a_second_ctrl_c_stops_at_once(folder: Folder, site: HangingSite) -> None:
    with folder.running("crawl", "links.py", "--workers", "2") as crawl:
        until_now("a request that hangs", lambda: HANGS in site.paths)
        workers = crawl.workers()
        os.killpg(crawl.pid, signal.SIGINT)  # To the whole group, as a terminal does.
        until_now("the first to be heard", lambda: STOPPING in crawl.err)
        os.killpg(crawl.pid, signal.SIGINT)
        ended = crawl.wait()
        until_now("the end of the workers", lambda: not any(map(is_alive, workers)))
    assert ended.code == 1, ended
    assert not has_crashed(ended.err), ended.err
    assert folder.stats("links").leased > 0  # It did not wait for requests in flight.
    asked = the_rest(folder, site)
    assert asked[HANGS] == 2


def test_a_worker_that_waits_for_work_ends_when_it_is_told_to(folder: Folder) -> None:
    for options in ([], ["--workers", "2"]):
        with folder.running("worker", "links.py", *options) as worker:
            until_now("it to be ready", lambda: catches(worker.pid, signal.SIGTERM))
            worker.send(signal.SIGTERM)
            ended = worker.wait()
        assert ended.code == 0, ended
        assert not has_crashed(ended.err), ended.err
