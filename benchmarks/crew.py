"""Starts and stops workers that crawl one slow host, and evaluates the log of that host."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from benchmarks.redis_server import RedisServer
from benchmarks.site_log import most_at_once, of, parts, span_s, until_there_are
from benchmarks.slow_server import Hit, SlowHosts
from benchmarks.spider import OneSite
from shoal import config
from shoal.config import Rules
from shoal.frontier import frontier_at
from shoal.runtime.eventloop import run
from shoal.seeds.seeding import seed_from_spider
from shoal.spider.own_settings import settings_of

ROOM = Rules().concurrency_per_host
LEASE_S = 3.0
"""The lease time in crawls in which a worker is killed: others wait as long for its tasks."""
SETTLED_S = 3.0
"""The pause between two events, in which shares settle."""
STAYING, JOINING, LEAVING, KILLED = "staying", "joining", "leaving", "killed"


class Divided(msgspec.Struct):
    """A whole crawl by workers that were all there when it began."""

    workers: int
    pages_per_s: float
    parts: list[float]
    """The pages of each worker, relative to an even share."""
    most_at_once: int
    trips_per_50: float | None = None
    """Round trips to Redis per 50 pages."""


class Handover(msgspec.Struct):
    """How long it took until shares were even again. None: they never were."""

    joined_s: float | None
    """From the first sign of life of a new worker until it had an even share."""
    left_s: float | None
    """From a SIGTERM until the remaining workers used all the room."""
    killed_s: float | None
    """From a SIGKILL until the remaining workers used all the room."""
    most_at_once: int


class Crew:
    """The worker processes of one crawl, by name. The name is also their user agent."""

    def __init__(self, frontier: str, results: str) -> None:
        self._frontier = frontier
        self._results = results
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str) -> None:
        """Start a worker, which stays until the crawl is finished."""
        command = [sys.executable, "-m", "shoal", "worker", "benchmarks.spider:OneSite"]
        command += ["--until-finished", "--allow-private", "--user-agent", name]
        command += ["--frontier", self._frontier, "--results", self._results]
        self._processes[name] = subprocess.Popen(command)

    def end(self, name: str, how: signal.Signals) -> float:
        """Send a signal to a worker. Returns the time of that."""
        self._processes[name].send_signal(how)
        return time.monotonic()

    def wait(self) -> None:
        """Wait until all workers have ended by themselves."""
        for name, process in self._processes.items():
            if process.wait():
                raise SystemExit(f"worker {name} failed with exit code {process.returncode}")

    def kill(self) -> None:
        """Kill the workers that are left."""
        for process in self._processes.values():
            process.kill()
            process.wait()

    # On the frontier

    async def begin(self, lease_s: float) -> None:
        """Create the crawl, without any tasks."""
        settings = config.build({**settings_of(OneSite), "lease_s": lease_s})
        async with frontier_at(self._frontier) as frontier:
            await frontier.start(OneSite.name, settings.rules)

    async def seed(self) -> None:
        """Wait for all workers, then add all tasks."""
        await self.heard_of(len(self._processes))
        async with frontier_at(self._frontier) as frontier:
            rules = (await frontier.stats(OneSite.name)).rules
            await seed_from_spider(frontier, OneSite.name, OneSite(), rules)

    async def heard_of(self, workers: int) -> float:
        """Wait until `workers` workers have sent a heartbeat. Returns the time of that."""
        async with frontier_at(self._frontier) as frontier:
            while len(await frontier.workers(OneSite.name)) < workers:
                await asyncio.sleep(0.02)
        return time.monotonic()


@contextmanager
def crew_on(
    hosts: SlowHosts, pages: int, server: RedisServer | None, lease_s: float = Rules().lease_s
) -> Iterator[Crew]:
    """Begin a crawl of `pages` pages, on Redis if there is a server, otherwise on a file."""
    hosts.hits()  # Drops the hits of the crawl before.
    os.environ["SHOAL_BENCH_URLS"] = f"http://127.0.0.1:{hosts.ports[0]}"
    os.environ["SHOAL_BENCH_PAGES"] = f"{pages}"
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        store = f"sqlite:///{folder}/bench.db"
        if server is not None:
            server.empty()
        crew = Crew(server.address if server else store, store)
        run(crew.begin(lease_s))
        try:
            yield crew
        finally:
            crew.kill()


def divided(hosts: SlowHosts, workers: int, pages: int, server: RedisServer | None) -> Divided:
    """Run a whole crawl with a fixed number of workers."""
    names = [f"worker-{number}" for number in range(workers)]
    with crew_on(hosts, pages, server) as crew:
        for name in names:
            crew.start(name)
        run(crew.seed())
        before = server.load() if server else None
        crew.wait()
        load = server.load() - before if server and before else None
    hits = _only_host(hosts)
    if len(hits) != pages:
        raise SystemExit(f"benchmarks: {len(hits)} requests for {pages} pages")
    return Divided(
        workers,
        pages / span_s(hits),
        parts(hits, names),
        most_at_once(hits),
        load.reads / pages * 50 if load else None,
    )


def handover(hosts: SlowHosts, pages: int, server: RedisServer | None) -> Handover:
    """Run three workers, add a fourth, stop one of the three, then kill another. There must be
    enough pages that all this happens before the crawl is over."""
    with crew_on(hosts, pages, server, LEASE_S) as crew:
        for name in (STAYING, LEAVING, KILLED):
            crew.start(name)
        run(crew.seed())
        time.sleep(SETTLED_S)
        crew.start(JOINING)
        heard_at = run(crew.heard_of(4))
        time.sleep(SETTLED_S)
        left_at = crew.end(LEAVING, signal.SIGTERM)
        time.sleep(SETTLED_S)
        killed_at = crew.end(KILLED, signal.SIGKILL)
        time.sleep(LEASE_S + SETTLED_S)
        hits = _only_host(hosts)
    if len(hits) >= pages:
        raise SystemExit("benchmarks: the crawl was over before the last event")
    joining = of(hits, [JOINING])
    joined_at = min(heard_at, joining[0].came) if joining else heard_at
    return Handover(
        until_there_are(ROOM // 4, joining, joined_at),
        until_there_are(ROOM, of(hits, [STAYING, JOINING, KILLED]), left_at),
        until_there_are(ROOM, of(hits, [STAYING, JOINING]), killed_at),
        most_at_once(hits),
    )


def _only_host(hosts: SlowHosts) -> Sequence[Hit]:
    (hits,) = hosts.hits().values()
    return hits
