"""kill -9 of workers in the middle of chains: the next worker goes on with the cookies."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web

from support.login_site import LoginSite, spider
from support.processes import Folder, is_alive, seeded_random
from support.rarely import first_then_rare
from support.redis_chaos import DURABLE, assert_adds_up
from support.redis_servers import RedisServer
from support.sites import serving
from support.until import until, until_now

pytestmark = pytest.mark.rare

CHAINS = ["ann", "bob", "cleo", "dan"]
LAST, WORKERS, KILLS = 12, 2, 3


class GatedSite(LoginSite):
    """Answers only as many requests as are allowed."""

    def __init__(self) -> None:
        super().__init__()
        self.allowed = 0

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        answer = await super()._respond(request)
        number = len(self.asked)
        await until(f"{request.path} to be allowed", lambda: number <= self.allowed)
        return answer


@pytest.fixture(params=first_then_rare("sqlite", "redis"))
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Folder]:
    if request.param == "sqlite":
        yield Folder(tmp_path)
        return
    with RedisServer(tmp_path / "redis", *DURABLE) as server:
        yield Folder(tmp_path, {"SHOAL_FRONTIER": server.url})


def test_workers_are_killed_in_the_middle_of_sessions(folder: Folder) -> None:
    random = seeded_random("kills in the middle of sessions")
    with serving(GatedSite()) as site:
        folder.write("login.py", spider(site, chains=CHAINS, last=LAST))
        with folder.running("crawl", "login.py:Chains", "--workers", str(WORKERS)) as crawl:
            # After all chains have begun: a kill in the middle of a login would repeat that.
            first, last = 3 * len(CHAINS), (LAST - 2) * len(CHAINS)
            moments = sorted(random.sample(range(first, last), KILLS))
            for moment in moments:
                site.allowed = moment
                until_now(f"request {moment} and more", lambda: len(site.asked) > site.allowed)
                until_now("all workers", lambda: len(crawl.workers()) == WORKERS)
                # All workers the first time, so that at least one is hit that has a task.
                chosen = (
                    crawl.workers() if moment == moments[0] else [random.choice(crawl.workers())]
                )
                for pid in chosen:
                    os.kill(pid, signal.SIGKILL)
                until_now("their end", lambda pids=chosen: not any(map(is_alive, pids)))  # type: ignore[misc]
            site.allowed = 10**9
            ended = crawl.wait()
        assert ended.code == 0, ended
        stats = folder.stats("chains")
        assert site.faults == []
        assert_adds_up(stats)
        assert (stats.state, stats.dead) == ("finished", 0)
        assert stats.lost > 0, "nobody was hit"
        assert stats.done == len(CHAINS) * (LAST + 2)
