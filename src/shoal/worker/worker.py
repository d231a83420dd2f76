"""A worker: lease ▸ visit ▸ commit, until the crawl is finished or it is told to stop.

It holds no state that matters: whatever it has leased comes back to the queue if it dies.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from math import inf
from typing import Protocol

from shoal.archive.port import Archive
from shoal.config import Rules
from shoal.errors import ShoalError, StorageError, UnknownCrawl, cause_of
from shoal.frontier.parts import add_surplus
from shoal.frontier.port import WorkSource
from shoal.frontier.values import Ask, CrawlState, Entry, Grant, Lease, Outcome, Stats, Verdict
from shoal.results.port import Results
from shoal.runtime.patience import patiently, wait_for_event
from shoal.worker.committer import SOON_S, Committer, keep_of
from shoal.worker.heartbeat import Heartbeat
from shoal.worker.report import Report, give_back

POLL_S = 0.25
"""How often an idle worker looks for work that others brought."""

ASK_EVERY_S = 0.01
"""The least time between two questions: each costs the same, however much it brings."""

DRAIN_S = 5.0
"""How long requests in flight may take once a worker was told to stop."""

IDLE_S = 0.003
"""How long half of the slots may stand idle while a batch is being saved."""

BATCH_PER_SLOT = 4
"""Reports that make a batch full, per request in flight. With fewer, commits take more time."""

HELD_PER_SLOT = 12
"""Leases held at most, per request in flight. Most of what is not in flight waits to be committed:
when the stores are slow this fills up, and nothing more is leased."""

AHEAD_S = 0.08
"""Leases are taken ahead for what is visited in this time: about as long as it takes until a batch
is committed and new ones come. A worker whose pages are slow takes none ahead of others."""

AHEAD_PER_SLOT = 4
"""Leases taken ahead at most, per request in flight."""

STUCK_S = 10.0
"""Leases that have waited so long for a slot are given back: the site has come to a stand, and
other workers may have nothing to do."""

MAX_HELD_BYTES = 64 * 1024 * 1024
"""Nothing more is leased while what waits for the stores takes so much memory."""

log = logging.getLogger("shoal")


class Visits(Protocol):
    """How pages are visited: with a spider of ours, or inside Scrapy's engine."""

    def begin(self, rules: Rules) -> None:
        """The crawl is running, under these rules. Comes again if it is started again."""

    async def visit(self, lease: Lease, decided: float) -> Report:
        """One try. `decided` is the monotonic moment of the grant: permission to send is short."""

    def confirm(self, follow_ups: Sequence[Entry]) -> None:
        """The frontier has these now: they need not be offered again."""

    def start_over(self) -> None:
        """The crawl was started over: what was confirmed holds no more."""

    async def close(self) -> None: ...


class Worker:
    """One worker's work. `run` returns when it is over; `drain` makes it end soon."""

    def __init__(
        self,
        name: str,
        crawl: str,
        visits: Visits,
        frontier: WorkSource,
        results: Results | None,
        *,
        slots: int,
        archive: Archive | None = None,
        until_finished: bool = True,
        drain_s: float | None = DRAIN_S,
        on_idle: Callable[[], None] = lambda: None,
        watch: Callable[[float], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self._name = name
        self._crawl = crawl
        self._visitor = visits
        self._frontier = frontier
        self._results = results  # None where nothing is kept.
        self._archive = archive
        self._until_finished = until_finished
        self._drain_s = drain_s
        self._on_idle = on_idle
        self._watch = watch  # Looks after work whose leases last so long: see watchdog.py.
        self._slots = slots
        self._held: dict[str, Lease] = {}
        self._ready: deque[tuple[Lease, float]] = deque()  # Leased ahead, and when.
        self._ahead = 0
        self._finished_at = 0.0
        self._visits: dict[str, asyncio.Task[Report]] = {}
        self._heartbeat = Heartbeat(frontier, crawl, name, lambda: len(self._visits))
        self._epoch = 0
        self._ask_at = 0.0
        self._asking = False
        self._is_scarce = False
        self._is_alone = False
        self._is_over = False
        self._stirred = 0
        self._committer: Committer
        self._changed = asyncio.Event()
        self._draining = asyncio.Event()
        self.over_as: CrawlState | None = None
        """How the crawl had ended when we last looked. None: it had not."""

    def drain(self) -> None:
        """Lease no more; finish or give back what is in hand."""
        self._draining.set()
        self._changed.set()

    def stir(self) -> None:
        """There may be work again: look now."""
        self.over_as = None
        self._stirred += 1
        self._changed.set()

    async def run(self) -> None:
        """Work until the crawl is over, or for as long as there are crawls to work on."""
        try:
            async with asyncio.TaskGroup() as group:
                beats = group.create_task(self._heartbeat.run())
                while (rules := await self._joined()) is not None:
                    self.over_as = None
                    self._visitor.begin(rules)
                    with self._watch(rules.lease_s):
                        await self._work(rules)
                beats.cancel()
        except BaseExceptionGroup as group_error:
            raise cause_of(group_error) from None
        finally:
            await self._visitor.close()

    async def _joined(self) -> Rules | None:
        """Wait for the crawl to run. None: there is nothing to do any more."""
        while not self._draining.is_set():
            self._changed.clear()
            stirred = self._stirred
            stats = await patiently("frontier", self._look)
            if stats is not None and stats.state in (CrawlState.RUNNING, CrawlState.PAUSED):
                return stats.rules
            if stats is not None and stats.state.over:
                if self._until_finished:
                    return None
                if stirred == self._stirred:  # Else work was brought since we looked.
                    self.over_as = stats.state
                self._on_idle()
            await wait_for_event(self._changed, POLL_S)
        return None

    async def _look(self) -> Stats | None:
        try:
            return await self._frontier.stats(self._crawl)
        except UnknownCrawl:
            return None

    async def _work(self, rules: Rules) -> None:
        self._is_over = False
        self._finished_at = time.monotonic()  # The first batch takes its time from here.
        self._committer = Committer(
            *(self._crawl, self._results, self._finish),
            batch_size=self._slots * BATCH_PER_SLOT,
            on_finished=self._finished,
            archive=self._archive,
            keep=keep_of(rules),
        )
        try:
            async with asyncio.TaskGroup() as group:
                commits = group.create_task(self._committer.run())
                renewals = group.create_task(self._keep_leases(rules.lease_s / 3))
                await self._pump()
                await self._settle()
                self._committer.close()
                await commits
                renewals.cancel()
        except BaseExceptionGroup as group_error:
            cause = cause_of(group_error)
            if isinstance(cause, ShoalError):
                await self._give_all_back()
            raise cause from None
        finally:
            self._cancel_visits()

    async def _give_all_back(self) -> None:
        """A store has failed us. That is no fault of the tasks: left in our hands they would count
        as lost, and after some tries as poison. None may send a request any more."""
        self._cancel_visits()
        given_back = [give_back(lease, sent=True).outcome for lease in self._held.values()]
        with suppress(ShoalError, TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                await self._frontier.finish(self._crawl, given_back)

    # Leasing

    async def _pump(self) -> None:
        """Lease and start visits until told to stop or there is nothing more to come."""
        while not self._draining.is_set() and not self._is_over:
            self._changed.clear()
            free = self._free()
            wait_s = max(self._ask_at - time.monotonic(), self._leases_expected_s())
            if free > 0 and wait_s <= 0:
                await patiently("frontier", partial(self._lease, free))
            else:
                await wait_for_event(self._changed, wait_s if free > 0 else None)

    def _leases_expected_s(self) -> float:
        """How long to wait for what is finished to bring new leases with it: see `_finish`. With
        half of its slots idle, a worker does not wait for a store that takes long to save."""
        if self._asking or self._ready:
            return SOON_S
        is_idle = len(self._visits) * 2 < self._slots
        return self._committer.finish_expected_s(IDLE_S if is_idle else SOON_S)

    def _free(self) -> int:
        """How many leases to ask for: none beside a task that must be alone, nor while there is
        much to store."""
        if (self._is_alone and self._held) or self._committer.held_bytes > MAX_HELD_BYTES:
            return 0
        wanted = self._slots + self._ahead - len(self._visits) - len(self._ready)
        return min(wanted, self._slots * HELD_PER_SLOT - len(self._held))

    async def _lease(self, limit: int) -> None:
        self._asking = True
        try:
            self._begin(await self._frontier.lease(self._crawl, Ask(self._name, limit)), limit)
        except UnknownCrawl:
            self._is_over = True
        finally:
            self._asking = False

    async def _finish(self, outcomes: list[Outcome]) -> list[Lease]:
        """End tries, and ask in the same breath for as many new ones as there is room for."""
        await add_surplus(self._frontier, self._crawl, outcomes)
        may_ask = not (self._asking or self._is_over or self._draining.is_set())
        free = self._free() if may_ask else 0
        if free <= 0:
            stale = await self._frontier.finish(self._crawl, outcomes)
            self._ask_at = 0.0  # Hosts have room again, and there may be new tasks.
            return stale
        self._asking = True
        try:
            ask = Ask(self._name, free)
            stale, grant = await self._frontier.exchange(self._crawl, outcomes, ask)
        finally:
            self._asking = False
        self._begin(grant, free)
        return stale

    def _begin(self, grant: Grant, asked: int) -> None:
        """Start visits for what was granted, as far as there are slots."""
        self._is_over = grant.state.over
        self._ask_at = _ask_again_at(grant, asked)
        if grant.leases and grant.epoch != self._epoch:
            self._epoch = grant.epoch
            self._visitor.start_over()
        for lease in grant.leases:
            self._held[lease.token] = lease
            self._ready.append((lease, grant.decided))
        if grant.leases:
            self._is_scarce = any(lease.paced or lease.crowded for lease in grant.leases)
            self._is_alone = any(lease.alone for lease in grant.leases)
        self._start_visits()

    def _start_visits(self) -> None:
        """Visit what is leased. Once we were told to stop it is given back instead: nobody would
        wait for it any more."""
        if self._draining.is_set():
            self._give_ready_back()
        while self._ready and len(self._visits) < self._slots:
            lease, decided = self._ready.popleft()
            visit = asyncio.create_task(self._visit(lease, decided))
            visit.add_done_callback(partial(self._visited, lease))
            self._visits[lease.token] = visit

    def _give_ready_back(self, until: float = inf) -> None:
        """Give back what was leased ahead, until a moment."""
        while self._ready and self._ready[0][1] <= until:
            lease, _ = self._ready.popleft()
            self._ahead = 0  # Others are not taken in its place.
            self._committer.put(give_back(lease, sent=False))

    async def _visit(self, lease: Lease, decided: float) -> Report:
        try:
            return await self._visitor.visit(lease, decided)
        except StorageError:  # The pump will meet it too, and say so.
            return give_back(lease, sent=False)
        except Exception as error:
            log.exception("visiting %s failed: this is a fault in shoal", lease.task.url)
            reason = f"internal error: {type(error).__name__}: {error}"
            return Report(Outcome(lease=lease, verdict=Verdict.DEAD, reason=reason))

    def _visited(self, lease: Lease, visit: asyncio.Task[Report]) -> None:
        """Called when a visit is over, also if it was cancelled before it had begun."""
        report = give_back(lease, sent=True) if visit.cancelled() else visit.result()
        del self._visits[lease.token]
        self._committer.put(report)
        self._start_visits()
        if not self._ready:
            self._changed.set()
        if not self._visits:
            self._committer.hurry()

    def _finished(self, reports: list[Report], stale: set[str]) -> None:
        visited = 0
        for report in reports:
            outcome = report.outcome
            visited += outcome.verdict is not Verdict.RETURNED
            del self._held[outcome.lease.token]
            if outcome.lease.token not in stale:
                self._visitor.confirm(outcome.follow_ups)
                self._heartbeat.pages += outcome.verdict is Verdict.DONE
        self._look_ahead(visited)
        self._changed.set()

    def _look_ahead(self, visited: int) -> None:
        """Decide how many leases to take ahead of their visits: none while there are slots enough
        for what comes. What may be sent now or not at all cannot wait for a slot, and of a host
        that is full, others wait for what we hold."""
        now = time.monotonic()
        per_second = visited / max(now - self._finished_at, ASK_EVERY_S)
        self._finished_at = now
        is_quick = visited >= self._slots and not self._is_scarce
        most = self._slots * AHEAD_PER_SLOT if is_quick else 0
        self._ahead = min(int(per_second * AHEAD_S), most)

    # Holding and ending

    async def _keep_leases(self, every_s: float) -> None:
        while True:
            await asyncio.sleep(every_s)
            self._give_ready_back(until=time.monotonic() - STUCK_S)
            if held := list(self._held.values()):
                await patiently("frontier", partial(self._renew, held))

    async def _renew(self, held: list[Lease]) -> None:
        try:
            lost = await self._frontier.renew(self._crawl, held)
        except UnknownCrawl:
            lost = held
        for lease in lost:
            if lease.token in self._visits:
                self._visits[lease.token].cancel()
        if lost:
            self._give_ready_back()  # Those that are not lost are the next to be leased again.

    async def _settle(self) -> None:
        """Let what is in flight finish; what takes too long is given back."""
        self._give_ready_back()
        if self._visits:
            await asyncio.wait(self._visits.values(), timeout=self._drain_s)
        self._cancel_visits()
        if self._visits:
            await asyncio.wait(self._visits.values())

    def _cancel_visits(self) -> None:
        self._give_ready_back()  # Else each visit that ends would begin the next.
        for visit in self._visits.values():
            visit.cancel()


def _ask_again_at(grant: Grant, asked: int) -> float:
    """When to ask for more: soon if there was plenty, else when a host may be hit again."""
    wait_s = grant.wait_s
    if len(grant.leases) >= asked:
        wait_s = 0.0
    elif wait_s is None:
        wait_s = POLL_S
    return time.monotonic() + min(max(wait_s, ASK_EVERY_S), POLL_S)
