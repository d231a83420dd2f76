"""Several commands on one crawl at once, and a server that goes away and comes back."""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from support.links import numbered_pages, paths_of, put_spider
from support.processes import Folder
from support.sites import Site, serving
from support.until import until_now

pytestmark = pytest.mark.rare

PAGES = 150


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_two_crawls_of_one_name_share_the_work(folder: Folder) -> None:
    with serving(Site(numbered_pages(PAGES))) as site:
        put_spider(folder, [site], rate="none")
        command = ("crawl", "links.py", "--workers", "2")
        with folder.running(*command) as one, folder.running(*command) as other:
            assert one.wait().code == 0
            assert other.wait().code == 0
        assert sorted(site.paths) == sorted(paths_of(PAGES))
        assert len(site.robots_hits) == 1
    assert len(folder.export("links")) == PAGES + 1


def test_a_worker_that_joins_does_its_part(folder: Folder) -> None:
    with serving(Site(numbered_pages(PAGES))) as site:
        put_spider(folder, [site], rate="none")
        with folder.running("crawl", "links.py", "--rate", "40/s") as crawl:
            until_now("some pages", lambda: len(site.hits) > 3)
            folder.shoal("pause", "links")
            with folder.running("worker", "links.py", "--until-finished") as worker:
                until_now("both to be there", lambda: len(at_work(folder)) == 2)
                folder.shoal("resume", "links")
                assert crawl.wait().code == 0
                assert worker.wait().code == 0
        assert len(site.paths) == len(set(site.paths)) == PAGES + 1
    with closing(sqlite3.connect(folder.path / "shoal.db")) as database:
        workers = database.execute("SELECT count(DISTINCT worker) FROM pages").fetchone()
    assert workers == (2,)


def at_work(folder: Folder) -> list[str]:
    told = folder.shoal("status", "links", "--json").json()
    return [worker["worker"] for worker in told["workers"]]


def test_a_server_that_goes_away_and_comes_back(folder: Folder) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(ExitStack())
        site = server.enter_context(serving(Site(numbered_pages(PAGES))))
        put_spider(folder, [site], rate="none")
        command = ("crawl", "links.py", "--rate", "40/s", "--max-retries", "20")
        crawl = stack.enter_context(folder.running(*command))
        until_now("some pages", lambda: len(site.hits) > 3)
        server.close()
        until_now("failures", lambda: folder.stats("links").retries > 3)
        again = Site(numbered_pages(PAGES))
        again.port = site.port
        stack.enter_context(serving(again))
        assert crawl.wait().code == 0
        assert {*site.paths, *again.paths} == set(paths_of(PAGES))
    assert len(folder.export("links")) == PAGES + 1
    assert folder.stats("links").dead == 0
