"""New code reaches a fleet in the middle of a crawl: workers are replaced one by one, and all pages
are found once."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from shoal.worker.leasing import AHEAD_PER_SLOT
from support.crashes import has_crashed
from support.links import GatedSite, put_spider
from support.processes import Folder, Running
from support.redis_chaos import assert_links_are_complete
from support.redis_servers import RedisServer
from support.sites import serving
from support.until import until_now

SLOTS = 4
FLEET = 3
STEP = 20
"""How many pages are answered between two replacements."""
MOST_HELD = SLOTS * (1 + AHEAD_PER_SLOT)
PAGES = (FLEET + 1) * (STEP + MOST_HELD)
"""Enough for every worker to get some, whatever the others hold."""
WORKER = ("worker", "links.py", "--until-finished")
OLD, NEW = '"text": page.text', '"text": page.text, "version": 2'


@pytest.fixture
def site() -> Iterator[GatedSite]:
    with serving(GatedSite(PAGES)) as site:
        yield site
        site.allowed = 10**9


@pytest.fixture
def old(tmp_path: Path, redis_server: RedisServer, site: GatedSite) -> Folder:
    folder = Folder(tmp_path, {"SHOAL_FRONTIER": redis_server.url})
    roomy = {"rate": "none", "concurrency": SLOTS, "concurrency_per_host": PAGES}
    put_spider(folder, [site], **roomy)
    return folder


@pytest.fixture
def new(tmp_path: Path, redis_server: RedisServer, old: Folder) -> Folder:
    """The next version of the spider, whose items have one more field."""
    path = tmp_path / "new"
    path.mkdir()
    stores = {
        "SHOAL_FRONTIER": redis_server.url,
        "SHOAL_RESULTS": f"sqlite:///{old.path}/shoal.db",
    }
    folder = Folder(path, stores)
    folder.write("links.py", (old.path / "links.py").read_text("utf-8").replace(OLD, NEW))
    return folder


def wait_for_holders(folder: Folder, site: GatedSite, count: int) -> None:
    until_now("the crawl to begin", lambda: len(site.hits) > site.allowed)
    until_now(f"{count} workers with tasks", lambda: len(folder.holders("links")) == count)


@pytest.mark.rare
def test_workers_are_replaced_one_by_one(old: Folder, new: Folder, site: GatedSite) -> None:
    with ExitStack() as fleet:

        def start(folder: Folder, *command: str) -> Running:
            return fleet.enter_context(folder.running(*command))

        before = [start(old, "crawl", "links.py"), *(start(old, *WORKER) for _ in range(FLEET - 1))]
        site.allowed = STEP
        wait_for_holders(old, site, FLEET)
        after = list[Running]()
        for outgoing in before:
            after.append(start(new, *WORKER))
            wait_for_holders(old, site, FLEET + 1)
            outgoing.send(signal.SIGTERM)
            site.allowed += STEP
            ended = outgoing.wait()
            # `crawl` reports that it was stopped before the end; for `worker` that is normal.
            assert ended.code == (1 if outgoing is before[0] else 0), ended
            assert not has_crashed(ended.err), ended.err
        wait_for_holders(old, site, FLEET)
        site.allowed = 10**9
        assert [worker.wait().code for worker in after] == [0] * FLEET
    stats = assert_links_are_complete(old, [site], PAGES)
    assert stats.lost == 0
    versions = [item.get("version", 1) for item in old.export("links")]
    assert set(versions) == {1, 2}
