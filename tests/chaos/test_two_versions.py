"""A fleet is updated in the middle of a crawl: workers of two versions use one frontier, some are
killed, and all pages are found once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web

from support.crashes import has_crashed
from support.links import numbered_pages
from support.processes import Folder
from support.rarely import first_then_rare
from support.redis_chaos import assert_links_are_complete, assert_losses_explain_repeats
from support.redis_servers import RedisServer
from support.sites import Site, serving
from support.until import until, until_now
from support.versions import LAST, NEXT, OLDER, next_version, run_by

PAGES = 120
SLOTS = 4
SPIDER = """
import shoal

class Page(shoal.Item, key="url"):  # Both versions may read a page: one of them is killed.
    url: str
    by: str
    wish: str | None

class Links(shoal.Spider):
    start_urls = [{url!r}]
    allow_private = True
    rate = "none"
    concurrency = {slots}
    lease_s = 2.0

    def parse(self, page):
        wish = getattr(page.task, "wish", None)
        yield Page(url=page.url, by=shoal.__version__, wish=wish)
        for task in page.follow_all("a"):
            if hasattr(task, "wish"):
                task.wish = "kept"
            yield task
"""
CRAWL = ("crawl", "links.py")
WORKER = ("worker", "links.py", "--until-finished")


class StoppingSite(Site):
    """Answers a limited number of requests of each version (by User-Agent), and holds the rest."""

    def __init__(self) -> None:
        super().__init__(numbered_pages(PAGES))
        self.allowed = {LAST: 0, NEXT: 0}
        self.seen: Counter[str] = Counter()
        self.under_way: Counter[str] = Counter()

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        response = await super()._respond(request)
        if request.path == "/robots.txt":
            return response
        version = request.headers["User-Agent"].partition("/")[2].partition(" ")[0]
        self.seen[version] += 1
        self.under_way[version] += 1
        number = self.seen[version]
        await until(f"{request.path} to be let go", lambda: number <= self.allowed[version])
        self.under_way[version] -= 1
        return response

    def open(self) -> None:
        """Answer all requests from now on."""
        self.allowed = dict.fromkeys(self.allowed, 10**9)

    def until_held(self, version: str) -> None:
        until_now(f"requests of {version}", lambda: self.under_way[version] >= SLOTS)

    def forget(self, version: str) -> None:
        """Drop the requests of a version whose worker is dead."""
        self.allowed[version] = self.seen[version]
        until_now(f"the last of {version}", lambda: not self.under_way[version])


@pytest.fixture
def site() -> Iterator[StoppingSite]:
    with serving(StoppingSite()) as site:
        yield site
        site.open()


def written(folder: Folder, site: Site) -> Folder:
    folder.write("links.py", SPIDER.format(url=site.url, slots=SLOTS))
    return folder


@pytest.fixture(
    params=first_then_rare("redis", "sqlite"),
)
def folder(request: pytest.FixtureRequest, tmp_path: Path, site: Site) -> Folder:
    env = {}
    if request.param == "redis":
        server: RedisServer = request.getfixturevalue("redis_server")
        server.client().flushall()
        env = {"SHOAL_FRONTIER": server.url}
    return written(Folder(tmp_path, env), site)


@pytest.mark.rare
def test_both_work_on_one_crawl_and_nothing_is_lost(
    folder: Folder, site: StoppingSite, tmp_path: Path
) -> None:
    newer, older = run_by(next_version(tmp_path / "next")), run_by(OLDER)
    site.allowed[NEXT] = 1  # The newer version reads the front page, whose tasks get its field.
    with folder.running(*CRAWL, env=newer) as crawl:
        site.until_held(NEXT)
        with folder.running(*WORKER, env=older) as worker:
            site.allowed[LAST] = 10
            site.until_held(LAST)
            status = folder.shoal("status", "links").out
            assert "2 versions at work: " in status
            assert f"{LAST} " in status
            assert f"{NEXT} " in status
            worker.kill_all()
        site.forget(LAST)
        crawl.kill_all()
        site.forget(NEXT)
    by_older = site.seen[LAST]
    with folder.running(*CRAWL, env=newer) as crawl, folder.running(*WORKER, env=older) as worker:
        site.until_held(NEXT)
        site.until_held(LAST)
        site.open()
        ended = [crawl.wait(), worker.wait()]
    assert [each.code for each in ended] == [0, 0], ended
    assert not any(has_crashed(each.err) for each in ended), ended
    assert site.seen[LAST] > by_older > 10
    stats = assert_links_are_complete(folder, [site], PAGES)
    assert_losses_explain_repeats([site], stats)
    assert stats.lost >= 2 * SLOTS
    items = [item for item in folder.export("links") if item["url"] != site.url]
    by_version = Counter((item["by"], item["wish"]) for item in items)
    assert by_version.keys() == {(NEXT, "kept"), (LAST, None)}


COMMANDS = (
    ("status", "links"),
    ("status", "links", "--json"),
    ("explain", "links", "http://a.example/"),
    ("seed", "links", "http://a.example/"),
    ("dead", "list", "links"),
    ("dead", "retry", "links"),
    ("pause", "links"),
    ("cancel", "links"),
)
"""Commands that query or steer. They run in this process, which is of the older version."""


@pytest.mark.rare
def test_another_form_is_one_line_to_the_older(
    folder: Folder, site: StoppingSite, tmp_path: Path
) -> None:
    newer, older = run_by(next_version(tmp_path / "next", form=True)), run_by(OLDER)
    site.open()
    with folder.running("worker", "links.py", env=older) as worker:
        begun = folder.process(*CRAWL, env=newer)
        assert begun.code == 0, begun
        refused = [worker.wait(), folder.process(*CRAWL, "--fresh", env=older)]
    refused += [folder.shoal(*command) for command in COMMANDS]
    for ended in refused:
        assert ended.code == 2, ended
        (line,) = [line for line in ended.err.splitlines() if line.startswith("shoal: ")]
        assert "was written by a newer shoal" in line
    assert folder.process(*CRAWL, env=newer).code == 0
    assert len(folder.export("links")) == PAGES + 1
