"""Runs the real frontier with simulated fetches, on a simulated clock.

Workers ask twenty times a second, as real ones do: each finishes the pages that have arrived, with
their links, and leases as many as it has free slots. Between two requests the clock is advanced, so
a crawl of minutes takes only as long as the frontier needs. The clock is a parameter of the
frontier's constructor: SQLite calls it, and on Redis the client passes its time to the scripts.
Nothing that is stored can set it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush

import msgspec

from benchmarks.billion.web import Links, Web
from shoal.config import Rules
from shoal.core.task import Task
from shoal.core.urls import fingerprint
from shoal.frontier.port import Frontier
from shoal.frontier.values import Ask, Control, Entry, Lease, Outcome, Verdict

CRAWL = "billion"
SLOTS_PER_WORKER = 400
BATCH = 1_000
BEGAN = 1_800_000_000.0


class Clock:
    """The simulated clock of the frontier."""

    def __init__(self) -> None:
        self.now = BEGAN

    def __call__(self) -> float:
        return self.now


class Seen(msgspec.Struct, kw_only=True):
    """What a trial has observed of a frontier."""

    pages: int = 0
    urls: int = 0
    """URLs known at the end."""
    waiting: int = 0
    seconds: float = 0.0
    """Time of the crawl, by the simulated clock."""
    real_s: float = 0.0
    """Real time that the frontier and its client have taken."""
    asked: int = 0
    """Round trips."""
    longest_queue: int = 0
    longest_queue_of: str = ""
    worst_wait_s: float = 0.0
    """The longest that a host with work has waited beyond its turn."""
    worst_wait_of: str = ""
    least_gap_s: float = 0.0
    """The shortest time between two leases of one host."""

    @property
    def us_per_page(self) -> float:
        """Real microseconds, of frontier and client together."""
        return self.real_s / self.pages * 1e6


class _Worker:
    def __init__(self, name: str, slots: int) -> None:
        self.name = name
        self.slots = slots
        self.in_flight: list[tuple[float, int, Lease]] = []


class _Hosts:
    """The trial's own record of all hosts, against which the frontier is checked."""

    def __init__(self, web: Web) -> None:
        self.sites = [f"shop-{number:06}.example" for number in range(web.hosts)]
        self.number_of = {site: number for number, site in enumerate(self.sites)}
        self.urls = [0] * web.hosts
        self.leased = [0] * web.hosts
        self.leased_at = [0.0] * web.hosts
        self.ready_at = [BEGAN] * web.hosts
        self.turn_s = web.turn_s

    def entry(self, number: int, parent: str | None, depth: int) -> Entry:
        """A new URL of a host, as a link on one of its pages."""
        site = self.sites[number]
        url = f"https://{site}/catalogue/garden/product-{self.urls[number]:08}.html"
        self.urls[number] += 1
        task = Task(url=url, job_type="product", site=site, depth=depth, parent=parent)
        return Entry(fingerprint(url), task)

    def lease(self, number: int, now: float, seen: Seen) -> None:
        """Note that a page of a host was leased."""
        if self.leased[number]:
            gap_s = now - self.leased_at[number]
            seen.least_gap_s = min(seen.least_gap_s or gap_s, gap_s)
            wait_s = now - self.ready_at[number]
            if wait_s > seen.worst_wait_s:
                seen.worst_wait_s, seen.worst_wait_of = wait_s, self.sites[number]
        self.leased[number] += 1
        self.leased_at[number] = now
        self.ready_at[number] = now + self.turn_s

    def found(self, number: int, now: float) -> None:
        """Note that a link leads to a host. If it had no work, its wait begins only now."""
        if self.urls[number] == self.leased[number]:
            self.ready_at[number] = max(self.ready_at[number], now)


class Trial:
    """One crawl of a synthetic web on a frontier."""

    def __init__(self, web: Web, frontier: Frontier, clock: Clock) -> None:
        self._web = web
        self._frontier = frontier
        self._clock = clock
        self._hosts = _Hosts(web)
        self._links = Links(web)
        self._leases = 0
        self.seen = Seen()

    async def run(self, progress: Callable[[int], None] = lambda _: None) -> Seen:
        """Crawl to the end. Calls `progress` with the number of pages done."""
        await self._begin()
        workers = deque(self._workers())
        pause_s = self._web.ask_every_s / len(workers)
        while not await self._ask(workers[0]):
            workers.rotate(-1)
            self._clock.now += pause_s
            progress(self.seen.pages)
        await self._look()
        return self.seen

    def _workers(self) -> list[_Worker]:
        count = -(-self._web.slots // SLOTS_PER_WORKER)
        slots = [len(range(at, self._web.slots, count)) for at in range(count)]
        return [_Worker(f"worker-{number}", own) for number, own in enumerate(slots)]

    async def _begin(self) -> None:
        rules = Rules(rate=self._web.rate, robots=False, max_pages=self._web.pages, lease_s=3600.0)
        await self._frontier.start(CRAWL, rules)
        seeds = [self._hosts.entry(number, None, 0) for number in range(self._web.hosts)]
        for start in range(0, len(seeds), BATCH):
            await self._frontier.add(CRAWL, seeds[start : start + BATCH])
        await self._frontier.control(CRAWL, Control.SEAL)

    async def _ask(self, worker: _Worker) -> bool:
        """Finish the pages that have arrived, and lease new ones. Returns whether the crawl is
        over."""
        now = self._clock.now
        outcomes = []
        while worker.in_flight and worker.in_flight[0][0] <= now:
            outcomes.append(self._read(heappop(worker.in_flight)[2]))
        ask = Ask(worker.name, worker.slots - len(worker.in_flight))
        began = time.perf_counter()
        stale, grant = await self._frontier.exchange(CRAWL, outcomes, ask)
        self.seen.real_s += time.perf_counter() - began
        self.seen.asked += 1
        self.seen.pages += len(outcomes)
        if stale:
            raise SystemExit(f"billion: {len(stale)} leases were lost, though nobody died")
        for lease in grant.leases:
            number = self._hosts.number_of[lease.task.site]
            self._hosts.lease(number, now, self.seen)
            self._leases += 1  # Breaks ties in the heap, as leases cannot be compared.
            latency_s = self._web.latency_s(number)
            heappush(worker.in_flight, (now + latency_s, self._leases, lease))
        return grant.state.over

    def _read(self, lease: Lease) -> Outcome:
        """The outcome of a lease: the links of its page, and the latency of its host."""
        parent, depth = lease.fingerprint.hex(), lease.task.depth + 1
        follow_ups = []
        for number in self._links.of_page():
            self._hosts.found(number, self._clock.now)
            follow_ups.append(self._hosts.entry(number, parent, depth))
        latency_s = self._web.latency_s(self._hosts.number_of[lease.task.site])
        return Outcome(
            lease=lease, verdict=Verdict.DONE, follow_ups=follow_ups, latency_s=latency_s
        )

    async def _look(self) -> None:
        """Read the frontier's final counters, and check that nothing was lost."""
        stats, seen = await self._frontier.stats(CRAWL), self.seen
        if (stats.done, stats.added) != (self._web.pages, sum(self._hosts.urls)):
            raise SystemExit(
                f"billion: {stats.done:,} of {self._web.pages:,} pages are done and"
                f" {stats.added:,} of {sum(self._hosts.urls):,} URLs known: something was lost"
            )
        (longest,) = await self._frontier.hosts(CRAWL, 1)
        seen.urls, seen.waiting = stats.added, stats.waiting
        seen.longest_queue, seen.longest_queue_of = longest.waiting, longest.host
        seen.seconds = self._clock.now - BEGAN
