"""Looking after a crawl: seeds, dead letters, pause, resume, cancel, more workers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.links import GatedSite, numbered_pages
from support.links import put_spider as put_links_spider
from support.processes import Folder
from support.sites import Site, serving
from support.small_site import put_spider, small_site
from support.until import until_now

PAGES = 120
NOBODY_YET = "waiting for links: nobody has started it at sqlite:///shoal.db"
LEFT = r"left links after [^:]+: [\d,]+ pages?, \d+ items?, 0 dead"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
def site(folder: Folder) -> Iterator[Site]:
    """More pages than are fetched before somebody intervenes."""
    with serving(Site(numbered_pages(PAGES))) as site:
        put_links_spider(folder, [site], robots=False)
        yield site


@pytest.fixture
def small(folder: Folder) -> Iterator[Site]:
    with serving(small_site()) as site:
        put_spider(folder, site)
        yield site


# Pause, resume, cancel


def test_a_paused_crawl_waits_until_it_is_resumed(folder: Folder, site: Site) -> None:
    with folder.running("crawl", "links.py", "--rate", "40/s") as crawl:
        until_now("some pages", lambda: len(site.hits) > 5)
        assert folder.shoal("pause", "links").out == "links: paused\n"
        until_now("nothing in flight", lambda: folder.stats("links").leased == 0)
        fetched = len(site.hits)
        assert fetched < PAGES
        # Asking takes longer than the next request would.
        assert folder.shoal("status", "links", "--json").json()["state"] == "paused"
        assert len(site.hits) == fetched
        assert not crawl.has_ended()
        assert folder.shoal("resume", "links").out == "links: running\n"
        assert crawl.wait().code == 0
    assert len(site.paths) == PAGES + 1


def test_a_cancelled_crawl_ends_and_keeps_what_it_stored(folder: Folder, site: Site) -> None:
    with folder.running("crawl", "links.py", "--rate", "40/s", "--workers", "2") as crawl:
        until_now("some pages", lambda: len(site.hits) > 5)
        assert folder.shoal("cancel", "links").out == "links: cancelled\n"
        assert crawl.wait().code == 1
    stats = folder.stats("links")
    assert (stats.state, stats.remaining) == ("cancelled", 0)
    # What was stored but not yet finished when the crawl was cancelled stays stored, too.
    assert stats.done <= len(folder.export("links")) <= len(site.hits)
    assert stats.done + stats.dropped == stats.added == PAGES + 1
    again = folder.shoal("crawl", "links.py")
    assert again.code == 2
    assert "was cancelled; --fresh starts it over" in again.err
    for command in ("pause", "resume"):
        assert folder.shoal(command, "links").code == 2
    assert folder.shoal("crawl", "links.py", "--fresh", "--rate", "none").code == 0
    assert len(folder.export("links")) == PAGES + 1


# Dead letters


def test_dead_tasks_get_another_chance(folder: Folder, small: Site) -> None:
    assert folder.shoal("crawl", "small.py").code == 3
    fetched = len(small.paths)
    assert "1 task" in folder.shoal("dead", "retry", "small").out
    assert folder.stats("small").state == "running"
    text = (folder.path / "small.py").read_text()
    folder.write("small.py", text.replace("raise ValueError", "pass #"))
    assert folder.shoal("crawl", "small.py").code == 0
    assert small.paths[fetched:] == ["/broken"]
    assert folder.shoal("dead", "list", "small").out == "no dead tasks\n"
    assert folder.shoal("dead", "list", "small", "--json").json() == []


def test_dead_tasks_are_dropped_one_by_one_or_all(folder: Folder, small: Site) -> None:
    assert folder.shoal("crawl", "small.py").code == 3
    other, broken = f"{small.url}a", f"{small.url}x/../broken"
    assert "0 tasks" in folder.shoal("dead", "purge", "small", other).out
    assert "1 task" in folder.shoal("dead", "purge", "small", broken).out
    told = folder.shoal("explain", "small", broken, "--json").json()
    assert told["verdict"] == "dropped: purged; was dead: ValueError: a broken page"
    assert folder.shoal("crawl", "small.py").code == 0


# Seeds


def test_seeds_are_kept_for_a_crawl_that_nobody_has_started(folder: Folder, site: Site) -> None:
    urls = [f"{site.url}{n}" for n in (1, 2, 1)]
    assert folder.shoal("seed", "links", *urls).out == "links: 2 added, 1 known already, 0 bad\n"
    assert folder.stats("links").state == "new"
    assert folder.shoal("crawl", "links.py", "--rate", "none", "--max-depth", "0").code == 0
    assert sorted(site.paths) == ["/", "/1", "/2"]


def test_seeds_from_a_file_and_from_stdin(folder: Folder, site: Site) -> None:
    folder.write("seeds.txt", f"{site.url}1\n\n  {site.url}2  \n")
    assert "2 added" in folder.shoal("seed", "links", "--file", "seeds.txt").out
    assert (
        "1 added, 1 known" in folder.shoal("seed", "links", stdin=f"{site.url}2\n{site.url}3").out
    )
    assert "1 added" in folder.shoal("seed", "links", "--file", "-", stdin=f"{site.url}4").out
    assert folder.stats("links").added == 4


def test_seeds_may_be_tasks_and_bad_lines_are_named(folder: Folder, site: Site) -> None:
    task = {"url": f"{site.url}7", "job_type": "other", "meta": {"note": "hello"}}
    lines = [
        json.dumps(task).encode(),
        b"not a url",
        b'{"url": 7}',
        b'{"url": "http://a.example/", "colour": "red"}',
        b'{"no": "end"',
        b"\xff\xfe",
        b"",
        f"{site.url}8".encode(),
    ]
    seeded = folder.shoal("seed", "links", stdin=b"\n".join(lines))
    assert seeded.code == 0
    assert seeded.out == "links: 2 added, 0 known already, 5 bad\n"
    complaints = [line.partition(" skipped: ")[0] for line in seeded.err.splitlines()]
    assert complaints == [f"shoal: seed {number}" for number in (2, 3, 4, 5, 6)]
    assert folder.shoal("crawl", "links.py", "--rate", "none", "--max-depth", "0").code == 0
    (other,) = [item for item in folder.export("links") if "other" in item]
    assert (other["other"], other["note"]) == (f"{site.url}7", "hello")


# More workers


def test_a_worker_waits_for_a_crawl_and_ends_with_it(folder: Folder, site: Site) -> None:
    command = ("worker", "links.py", "--until-finished")
    with (
        folder.running(*command) as one,
        folder.running(*command, "--workers", "2") as three,
    ):
        until_now("two workers", lambda: len(three.workers()) == 2)
        until_now("what it waits for", lambda: NOBODY_YET in one.err)
        assert folder.shoal("crawl", "links.py", "--rate", "none").code == 0
        for worker in (one, three):
            ended = worker.wait()
            assert ended.code == 0
            assert "joined links\n" in ended.err or "links is finished\n" in ended.err
            assert re.search(LEFT, ended.err)
    assert len(site.paths) == len(set(site.paths)) == PAGES + 1


def test_a_worker_takes_on_a_finished_crawl_that_gets_seeds(folder: Folder, site: Site) -> None:
    ended = folder.shoal("crawl", "links.py", "--rate", "none", "--max-depth", "0")
    assert ended.code == 0
    assert folder.shoal("seed", "links", f"{site.url}1").code == 0
    assert folder.stats("links").state == "running"
    assert folder.shoal("seed", "links", f"{site.url}2").code == 0
    for workers, did in (("2", "2 pages, 2 items"), ("1", "0 pages, 0 items")):
        command = ("worker", "links.py", "--until-finished", "--max-depth", "0")
        ended = folder.shoal(*command, "--workers", workers)
        assert ended.code == 0
        assert ended.err.endswith(f": {did}, 0 dead\n"), ended
    assert sorted(site.paths) == ["/", "/1", "/2"]
    assert folder.stats("links").state == "finished"


def test_workers_are_known_while_they_work(folder: Folder) -> None:
    with serving(GatedSite(5)) as site:
        put_links_spider(folder, [site], robots=False)
        with folder.running("crawl", "links.py", "--rate", "none", "--workers", "2") as crawl:
            until_now("the first request", lambda: site.hits)
            until_now("both workers", lambda: len(folder.workers("links")) == 2)
            workers = folder.workers("links")
            assert {worker.pid for worker in workers} == set(crawl.workers())
            assert all(worker.rss_bytes > 10**6 for worker in workers)
            until_now("a request", lambda: sum(w.in_flight for w in folder.workers("links")) == 1)
            site.allowed = 3
            until_now("three pages", lambda: sum(w.pages for w in folder.workers("links")) == 3)
            site.allowed = 100
            assert crawl.wait().code == 0
    stats = folder.stats("links")
    assert (stats.sent, stats.blocked) == (6, 0)
