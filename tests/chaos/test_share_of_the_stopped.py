"""A worker stands still for longer than its share of a site lasts, so that others have got it."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from support.crowds import STARTERS, CrowdedSite, crowd, wait_for_request
from support.links import put_spider
from support.processes import Folder, seeded_random
from support.redis_chaos import assert_links_are_complete
from support.redis_servers import RedisServer
from support.sites import serving
from support.tcp_proxy import TcpProxy
from support.until import until_now

pytestmark = pytest.mark.rare

PAGES = 300
ROOM = 6
JOINED = "joined links"
LATE = "somebody else has the lease by now"
READS = "this page is read now"
MORE = f"""
import logging
from shoal.runtime import watchdog

# It would end a worker that was stopped, which is to show what it does when it goes on.
watchdog.STALLED_LEASES = 1_000

class Telling(Links):
    name = "links"

    def parse(self, page):
        logging.getLogger("shoal").info({READS!r})
        yield from super().parse(page)
"""


@pytest.fixture
def folder(tmp_path: Path, redis_server: RedisServer) -> Folder:
    return Folder(tmp_path, {"SHOAL_FRONTIER": redis_server.url})


def put_telling_spider(folder: Folder, site: CrowdedSite) -> None:
    """Write a spider that logs when it reads a page."""
    put_spider(folder, [site], rate="none", lease_s=1.0, concurrency_per_host=ROOM)
    own = (folder.path / "links.py").read_text("utf-8")
    folder.write("links.py", own + MORE)


def test_it_sends_nothing_before_it_has_asked_again(
    folder: Folder, redis_server: RedisServer
) -> None:
    chance = seeded_random("the moment")
    with serving(CrowdedSite(PAGES, chance)) as site, TcpProxy(redis_server.port) as network:
        put_telling_spider(folder, site)
        site.held_agents.add(STARTERS)  # Otherwise little may be left when the other comes.
        with crowd(folder, "links.py:Telling", starters=2) as workers:
            name = workers.join({"SHOAL_FRONTIER": f"redis://127.0.0.1:{network.port}/0"})
            worker = workers.others[name]
            until_now("the other worker to join", lambda: JOINED in worker.err)
            site.held_agents.clear()
            until_now("visits of all", lambda: site.visits[name] and site.visits[STARTERS])
            wait_for_request(site, len(site.hits) + chance.randrange(20, 60))
            site.held_agents |= {STARTERS, name}
            until_now(
                "all to wait for answers",
                lambda: site.in_flight.total() == ROOM > site.in_flight[name] > 0,
            )
            until_now(
                # A worker that is stopped while it writes results would keep the file locked.
                "what was answered to be saved",
                lambda: folder.stats("links").done == site.visits.total() - len(site.robots_hits),
            )
            sent = site.in_flight[name]
            worker.send(signal.SIGSTOP)
            site.held_agents.remove(name)
            until_now("others to have it all", lambda: site.in_flight[STARTERS] == ROOM)
            read = worker.err.count(READS)
            network.freeze()
            worker.send(signal.SIGCONT)
            until_now("its pages to be read", lambda: worker.err.count(READS) >= read + sent)
            network.heal()
            until_now("it to learn that it is late", lambda: LATE in worker.err)
            site.held_agents.clear()
            workers.wait()
        assert site.most == ROOM
        assert_links_are_complete(folder, [site], PAGES)
