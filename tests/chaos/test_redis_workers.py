"""Workers that stand still, lose their network, or die unseen: others do their work, and what they
report later changes nothing."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web

from shoal.config import USER_AGENT
from shoal.frontier.values import Stats
from shoal.runtime.process import worker_name
from shoal.worker.leasing import AHEAD_PER_SLOT
from support.crashes import has_crashed
from support.links import numbered_pages, put_spider
from support.processes import Ended, Folder, Running, seeded_random
from support.rarely import first_then_rare
from support.redis_chaos import (
    BACK,
    DURABLE,
    WAITING,
    assert_adds_up,
    assert_links_are_complete,
    assert_losses_explain_repeats,
)
from support.redis_servers import RedisServer
from support.sites import Site, serving
from support.tcp_proxy import TcpProxy
from support.until import until, until_now

SLOTS = 4
PAGES = 140
MOST_HELD = SLOTS * (1 + AHEAD_PER_SLOT)
"""The most tasks that a worker holds while no answer comes."""
HELD = "/1"
ELSEWHERE = "elsewhere"
"""The User-Agent of the worker that is harmed."""
CRAWL = ("crawl", "links.py", "--workers", "2")
WORKER = ("worker", "links.py", "--until-finished")
NOT_ENDED = "from shoal.runtime import watchdog\nwatchdog.STALLED_LEASES = 1_000\n"
"""Keeps the watchdog from ending a worker that was stopped: tests need it to go on."""
LATE = "somebody else has the lease by now"


class HoldingSite(Site):
    """Holds back answers: all to one worker, all for one page, and after a number of requests
    all."""

    def __init__(self, moment: int) -> None:
        super().__init__(numbered_pages(PAGES))
        self.moment = moment
        """How many requests are answered. Tests raise it."""
        self.is_open = False
        """Whether all answers are sent."""
        self.under_way: Counter[str] = Counter()
        """How many requests wait for their answers, by User-Agent."""
        self.answered = 0
        """How many pages were answered."""

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        response = await super()._respond(request)
        number, agent = len(self.hits), request.headers["User-Agent"]
        self.under_way[agent] += 1
        await until(
            f"{request.path} to be let go",
            lambda: self.is_open or not self._holds(request.path, agent, number),
        )
        self.under_way[agent] -= 1
        self.answered += request.path != "/robots.txt"
        return response

    def _holds(self, path: str, agent: str, number: int) -> bool:
        if path == "/robots.txt":
            return False
        return agent == ELSEWHERE or path == HELD or number > self.moment


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with RedisServer(tmp_path_factory.mktemp("redis"), *DURABLE) as server:
        yield server


@pytest.fixture
def site(server: RedisServer) -> Iterator[HoldingSite]:
    server.client().flushall()
    # As many pages are left as three workers can hold, so each of them gets some.
    moment = seeded_random("the moment").randrange(1, PAGES - 3 * MOST_HELD)
    with serving(HoldingSite(moment)) as site:
        yield site
        site.is_open = True


@pytest.fixture
def folder(tmp_path: Path, server: RedisServer, site: HoldingSite) -> Folder:
    folder = Folder(tmp_path, {"SHOAL_FRONTIER": server.url})
    roomy = {"rate": "none", "concurrency": SLOTS, "concurrency_per_host": PAGES}
    put_spider(folder, [site], lease_s=1.0, **roomy)
    return folder


@pytest.fixture
def elsewhere(tmp_path: Path, server: RedisServer, folder: Folder) -> Folder:
    """The folder of another machine, with the spider and the same frontier and results."""
    path = tmp_path / "elsewhere"
    path.mkdir()
    settings = {
        "SHOAL_FRONTIER": server.url,
        "SHOAL_RESULTS": f"sqlite:///{folder.path}/shoal.db",
        "SHOAL_USER_AGENT": ELSEWHERE,
    }
    other = Folder(path, settings)
    other.write("links.py", (folder.path / "links.py").read_text("utf-8") + NOT_ENDED)
    return other


def wait_until_requests_are_under_way(site: HoldingSite, agent: str) -> None:
    until_now(f"requests of {agent} to be under way", lambda: site.under_way[agent] > 0)


def wait_until_it_has_lost_them(folder: Folder, site: HoldingSite, worker: Running) -> Stats:
    """Let the other workers do all but one page, until they have taken over this one's leases."""
    site.moment = 10**9
    name = worker_name(worker.pid)
    until_now("its leases to expire", lambda: folder.stats("links").lost > 0)
    until_now("all of them to be taken over", lambda: name not in folder.holders("links"))
    stats = folder.stats("links")
    assert_adds_up(stats)
    return stats


def assert_complete(folder: Folder, site: HoldingSite, *ended: Ended) -> None:
    for command in ended:
        assert command.code == 0, command
        assert not has_crashed(command.err), command.err
    stats = assert_links_are_complete(folder, [site], PAGES)
    assert stats.lost > 0
    assert_losses_explain_repeats([site], stats)


@pytest.mark.rare
def test_one_stands_still_and_goes_on_when_all_is_done(
    folder: Folder, elsewhere: Folder, site: HoldingSite
) -> None:
    with folder.running(*CRAWL) as crawl, elsewhere.running(*WORKER) as worker:
        wait_until_requests_are_under_way(site, ELSEWHERE)
        worker.send(signal.SIGSTOP)
        site.is_open = True
        ended = crawl.wait()
        before = folder.stats("links")
        worker.send(signal.SIGCONT)
        late = worker.wait()
    assert LATE in late.err
    assert folder.stats("links") == before
    assert_complete(folder, site, ended, late)


def test_one_stands_still_and_goes_on_in_the_middle(
    folder: Folder, elsewhere: Folder, site: HoldingSite
) -> None:
    with folder.running(*CRAWL) as crawl, elsewhere.running(*WORKER) as worker:
        wait_until_requests_are_under_way(site, ELSEWHERE)
        worker.send(signal.SIGSTOP)
        lost = wait_until_it_has_lost_them(folder, site, worker).lost
        worker.send(signal.SIGCONT)
        until_now("it to learn that it is late", lambda: worker.err.count(LATE) >= lost)
        site.is_open = True
        ended, late = crawl.wait(), worker.wait()
    assert_complete(folder, site, ended, late)


@pytest.mark.rare
def test_one_of_a_fleet_that_stood_still_for_too_long_is_replaced(
    folder: Folder, site: HoldingSite
) -> None:
    """Its own watchdog ends it when it goes on, unless that has happened before: see
    watchdog.py."""
    with folder.running(*CRAWL) as crawl:
        wait_until_requests_are_under_way(site, USER_AGENT)
        until_now("both workers to hold tasks", lambda: len(folder.holders("links")) == 2)
        # A worker that is stopped while it writes results would keep the file locked.
        until_now("answers to be held back", lambda: len(site.hits) > site.moment)
        until_now(
            "every page that was answered to be saved",
            lambda: folder.stats("links").done == site.answered,
        )
        pid = seeded_random("which one").choice(crawl.workers())
        os.kill(pid, signal.SIGSTOP)
        site.is_open = True
        until_now("the others to do it all", lambda: folder.stats("links").state == "finished")
        os.kill(pid, signal.SIGCONT)
        ended = crawl.wait()
    assert_complete(folder, site, ended)


@pytest.mark.rare
@pytest.mark.parametrize("harm", first_then_rare("cut", "freeze"))
def test_one_loses_its_network(
    folder: Folder, elsewhere: Folder, server: RedisServer, site: HoldingSite, harm: str
) -> None:
    with TcpProxy(server.port) as network:
        command = (*WORKER, "--frontier", f"redis://127.0.0.1:{network.port}/0")
        with folder.running(*CRAWL) as crawl, elsewhere.running(*command) as worker:
            wait_until_requests_are_under_way(site, ELSEWHERE)
            getattr(network, harm)()
            wait_until_it_has_lost_them(folder, site, worker)
            network.heal()
            until_now("it to learn that it is late", lambda: LATE in worker.err)
            site.is_open = True
            ended, late = crawl.wait(), worker.wait()
    assert late.err.count(WAITING) == late.err.count(BACK) == (1 if harm == "cut" else 0)
    assert_complete(folder, site, ended, late)


def test_one_is_killed_where_nobody_sees_it(
    folder: Folder, elsewhere: Folder, site: HoldingSite
) -> None:
    with folder.running(*CRAWL) as crawl, elsewhere.running(*WORKER) as worker:
        wait_until_requests_are_under_way(site, ELSEWHERE)
        worker.kill_all()
        wait_until_it_has_lost_them(folder, site, worker)
        site.is_open = True
        ended = crawl.wait()
    assert_complete(folder, site, ended)
