"""kill -9 of workers in the middle of chains: each keeps its order, and never runs two steps at
once."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web

from shoal.frontier.values import Stats
from support.processes import Folder, is_alive, seeded_random
from support.rarely import first_then_rare
from support.redis_chaos import DURABLE, assert_adds_up
from support.redis_servers import RedisServer
from support.sites import Site, html, serving
from support.until import until, until_now

CHAINS, STEPS, WORKERS, KILLS = 6, 12, 3, 4
REDIRECTED, DEADLY, GONE = "3", "5", "8"
"""Steps that are not ordinary pages."""
ALL_STEPS = [*"0123", "3?moved", *(str(number) for number in range(4, STEPS))]

SPIDER = """
from shoal import Spider

class Chains(Spider):
    start_urls = [{url!r}]
    allow_private = True
    robots = False
    rate = "none"
    lease_s = 3600
    max_losses = 99

    def parse(self, page):
        for number in range({chains}):
            yield from self.steps(page, str(number), 0)

    def step(self, page):
        assert page.text != "deadly"
        yield from self.steps(page, page.task.chain, page.meta["step"] + 1)

    def steps(self, page, chain, first):
        # Each finds the next three: so a chain always has some that wait.
        for step in range(first, min(first + 3, {steps})):
            meta = dict(step=step)
            yield page.follow("/%s/%d" % (chain, step), self.step, chain=chain, meta=meta)
"""


class ChainSite(Site):
    """Checks the order of its chains. Answers only as many requests as are allowed."""

    def __init__(self) -> None:
        super().__init__(self._gated)
        self.allowed = 0
        """How many requests are answered. Tests raise it."""
        self.faults: list[str] = []
        self._under_way: dict[str, str] = {}

    async def _gated(self, path: str) -> web.Response:
        number = len(self.hits)
        _, chain, *rest = path.split("/")
        step = rest[0].partition("?")[0] if rest else ""
        before = self._under_way.setdefault(chain, step)
        if before != step:
            self.faults.append(f"{path} was asked for while step {before} was under way")
        await until(f"{path} to be allowed", lambda: number <= self.allowed)
        # If the worker was killed, another may have asked again and been answered first.
        if self._under_way.get(chain) == step:
            del self._under_way[chain]
        return _page(path, step)

    def steps_of(self, chain: int) -> list[str]:
        """The steps of a chain that were requested, in the order of arrival."""
        start = f"/{chain}/"
        return [path.removeprefix(start) for path in self.paths if path.startswith(start)]


def _page(path: str, step: str) -> web.Response:
    if step == REDIRECTED and "?" not in path:
        return web.Response(status=302, headers={"Location": f"{path}?moved"})
    if step == GONE:
        return html("gone", 404)
    return html("deadly" if step == DEADLY else "a page")


@pytest.fixture(params=first_then_rare("redis", "sqlite"))
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Folder]:
    if request.param == "sqlite":
        yield Folder(tmp_path)
        return
    with RedisServer(tmp_path / "redis", *DURABLE) as server:
        yield Folder(tmp_path, {"SHOAL_FRONTIER": server.url})


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    until_now("its end", lambda: not is_alive(pid))


def test_workers_are_killed_in_the_middle_of_chains(folder: Folder) -> None:
    random = seeded_random("kills in the middle of chains")
    with serving(ChainSite()) as site:
        folder.write("chains.py", SPIDER.format(url=site.url, chains=CHAINS, steps=STEPS))
        with folder.running("crawl", "chains.py", "--workers", str(WORKERS)) as crawl:
            for moment in sorted(random.sample(range(1, CHAINS * (STEPS - 2)), KILLS)):
                site.allowed = moment
                until_now(f"request {moment} and more", lambda: len(site.hits) > site.allowed)
                until_now("all workers", lambda: len(crawl.workers()) == WORKERS)
                kill(random.choice(crawl.workers()))
            site.allowed = 10**9
            ended = crawl.wait()
        assert ended.code == 3, ended
        assert_chains_were_kept(site, folder.stats("chains"))


def assert_chains_were_kept(site: ChainSite, stats: Stats) -> None:
    assert site.faults == []
    for chain in range(CHAINS):
        steps = site.steps_of(chain)
        order = [ALL_STEPS.index(step) for step in steps]
        assert order == sorted(order), steps
        assert set(steps) == set(ALL_STEPS)
    assert_adds_up(stats)
    assert (stats.state, stats.dead, stats.dropped) == ("finished", CHAINS, CHAINS)
    assert stats.done == 1 + CHAINS * (len(ALL_STEPS) - 2)
    assert len(site.hits) <= 1 + CHAINS * len(ALL_STEPS) + stats.lost
