"""A site that many workers share: how many requests of each are under way at any time, and workers
that come and go."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from bisect import insort
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import accumulate
from operator import attrgetter
from typing import Any, NamedTuple

from aiohttp import web

from shoal.config import USER_AGENT
from support.links import numbered_pages
from support.processes import Folder, Running
from support.sites import Site
from support.until import until, until_now

RANDOM_S = (0.02, 0.2)
EVEN_S = (0.1, 0.1)
"""Minimum and maximum time that answers take."""


class Change(NamedTuple):
    """A change in the requests under way: +1 for a new one, -1 for one answered or abandoned."""

    at: float
    """time.monotonic() of the change."""
    agent: str
    by: int


class Crowded(Site):
    """A site that notes when each request begins and ends, and which worker sent it: each worker
    has a User-Agent of its own."""

    notices_hang_ups = True

    def __init__(self, *args: Any, takes_s: tuple[float, float]) -> None:
        super().__init__(*args)
        self._takes_s = takes_s
        self.chance = random.Random()
        self.changes: list[Change] = []
        self.in_flight: Counter[str] = Counter()
        """Requests under way, by User-Agent."""
        self.visits: Counter[str] = Counter()
        """Requests that were answered, by User-Agent."""
        self.held_agents: set[str] = set()
        """User-Agents that get no answer while they are in this set."""

    @property
    def most(self) -> int:
        """The most requests that were under way at once."""
        return self.most_since(0)

    def most_since(self, change: int) -> int:
        """The most requests that were under way at once, from an index in `changes` on."""
        return max([*accumulate(change.by for change in self.changes)][change:], default=0)

    def visits_of_next(self, requests: int) -> Counter[str]:
        """Wait for this many more answers, and return them counted by User-Agent."""
        before, number = self.visits.copy(), self.visits.total() + requests
        until_now(f"answer {number}", lambda: self.visits.total() >= number)
        return self.visits - before

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        agent = request.headers["User-Agent"]
        began = time.monotonic()
        self._note(Change(began, agent, 1))
        try:
            response = await super()._respond(request)
            await asyncio.sleep(self.chance.uniform(*self._takes_s))
            if agent in self.held_agents:
                await until(f"{agent} to be answered", lambda: agent not in self.held_agents)
        except asyncio.CancelledError:
            # The client hung up, perhaps before requests that were noticed earlier were sent.
            self._note(Change(max(began, self._idle_at), agent, -1))
            raise
        self._note(Change(time.monotonic(), agent, -1))
        self.visits[agent] += 1
        return response

    def _note(self, change: Change) -> None:
        insort(self.changes, change, key=attrgetter("at"))
        self.in_flight[change.agent] += change.by


class CrowdedSite(Crowded):
    """A crowded site with numbered pages."""

    def __init__(
        self,
        pages: int,
        chance: random.Random | None = None,
        takes_s: tuple[float, float] = RANDOM_S,
    ) -> None:
        super().__init__(numbered_pages(pages), takes_s=takes_s)
        self.chance = chance or self.chance


class Crowd:
    """Workers on one crawl. Some belong to the command that began it. The others are commands of
    their own, each with its own User-Agent."""

    def __init__(self, folder: Folder, stack: ExitStack, spider: str, starters: int) -> None:
        self._folder = folder
        self._stack = stack
        self._spider = spider
        self._names = iter(range(10**9))
        self.others: dict[str, Running] = {}
        """The worker commands, by User-Agent."""
        self.first = self._run("crawl", spider, "--workers", str(starters))

    def join(self, env: Mapping[str, str] | None = None) -> str:
        """Start another worker, and return its User-Agent."""
        name = f"worker-{next(self._names)}"
        more = {"SHOAL_USER_AGENT": name, **(env or {})}
        self.others[name] = self._run("worker", self._spider, "--until-finished", env=more)
        return name

    def kill_a_starter(self, chance: random.Random) -> None:
        """Kill one of the first workers with SIGKILL. Its fleet starts another in its place."""
        if pids := self.first.workers():
            os.kill(chance.choice(pids), signal.SIGKILL)

    def replace(self, name: str, number: int) -> str:
        """Send a worker a signal, and start another."""
        worker = self.others.pop(name)
        if not worker.has_ended():
            worker.send(number)
        return self.join()

    def harm(self, chance: random.Random) -> None:
        """Kill or drain a random worker."""
        victim = chance.choice(sorted(self.others))
        harms = (
            lambda: self.kill_a_starter(chance),
            lambda: self.replace(victim, signal.SIGKILL),
            lambda: self.replace(victim, signal.SIGTERM),
        )
        chance.choice(harms)()

    def wait(self) -> None:
        """Wait for the end of the crawl and of all workers that were not replaced."""
        for command in (self.first, *self.others.values()):
            ended = command.wait()
            assert ended.code == 0, ended
            assert "Traceback" not in ended.err

    def _run(self, *args: str, env: Mapping[str, str] | None = None) -> Running:
        return self._stack.enter_context(self._folder.running(*args, env=env))


@contextmanager
def crowd(
    folder: Folder, spider: str = "links.py", *, starters: int, others: int = 0
) -> Iterator[Crowd]:
    """Begin a crawl with `starters` workers, and let `others` join it."""
    with ExitStack() as stack:
        workers = Crowd(folder, stack, spider, starters)
        for _ in range(others):
            workers.join()
        yield workers


def wait_for_request(site: CrowdedSite, number: int) -> None:
    until_now(f"request {number}", lambda: len(site.hits) >= number)


STARTERS = USER_AGENT
"""The User-Agent of the first workers."""
