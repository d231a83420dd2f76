"""A worker: lease ▸ visit ▸ commit, until the crawl is finished or it is told to stop.

It holds no state that matters: if it dies, everything it has leased returns to the queue.
leasing.py decides what it does next about its leases; this module carries the decisions out.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from itertools import chain
from typing import Protocol

from shoal.config import Rules
from shoal.core.ledger import Cause
from shoal.errors import ShoalError, UnknownCrawl, cause_of
from shoal.frontier.parts import add_surplus
from shoal.frontier.values import (
    ENDING,
    Ask,
    CrawlState,
    Entry,
    Grant,
    Lease,
    Outcome,
    Stats,
    Verdict,
)
from shoal.runtime.patience import patiently, wait_for_event
from shoal.worker.assignment import DRAIN_S, Assignment
from shoal.worker.committer import Committer, keep_of
from shoal.worker.error_limit import Deaths, pause_after_errors
from shoal.worker.heartbeat import Heartbeat
from shoal.worker.leasing import POLL_S, Leasing, Question
from shoal.worker.meter import Did, Meter
from shoal.worker.moves import kept_to_rules
from shoal.worker.publishing import Outlet
from shoal.worker.renewals import Renewals
from shoal.worker.report import Report, give_back, give_up
from shoal.worker.slots import Slots

BATCH_PER_SLOT = 4
"""Reports that make a batch full, per slot. With fewer, commits take more time."""


class Visits(Protocol):
    """How pages are visited: with a spider of Shoal, or inside Scrapy's engine."""

    def begin(self, rules: Rules) -> None:
        """The crawl runs under these rules. Called again each time that it is started again."""

    async def visit(self, lease: Lease, send_by: float, answered: Callable[[], None]) -> Report:
        """Make one try. Its request may leave until `send_by`, by time.monotonic(), and not later.

        Call `answered` when the host has answered without complaint and there is still work to do,
        such as parsing the page: other requests may be sent from then on.
        """

    def confirm(self, follow_ups: Sequence[Entry]) -> None:
        """The frontier has these follow-ups now: they need not be offered again."""

    def start_over(self) -> None:
        """The crawl was started over: earlier confirmations no longer hold."""

    async def close(self) -> None: ...


class Worker:
    """One worker. `run` returns when its work is over; `drain` makes it end soon."""

    def __init__(
        self,
        assignment: Assignment,
        visits: Visits,
        *,
        on_idle: Callable[[], None] = lambda: None,
        watch: Callable[[float], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self._assignment = assignment
        self._name = assignment.worker
        self._crawl = assignment.crawl
        self._frontier = assignment.stores.frontier
        self._lenders = [it for it in (assignment.exits, assignment.sessions) if it is not None]
        publishing = assignment.publishing
        self._outlet = Outlet(publishing) if publishing is not None else None
        self._visits = visits
        self._on_idle = on_idle
        self._watch = watch  # Watches work whose leases last that long: see watchdog.py.
        self._leasing = Leasing(assignment.slots)
        self._slots = Slots(visits.visit, self._answered, self._visited)
        self._meter = Meter(assignment.slots)
        self._heartbeat = Heartbeat(
            self._frontier,
            self._crawl,
            self._name,
            self._meter,
            self._in_flight,
            assignment.spider_version,
        )
        self._deaths = Deaths()
        self._epoch = 0
        self._wakes = 0
        self._committer: Committer
        self._changed = asyncio.Event()
        self.over_as: CrawlState | None = None
        """How the crawl had ended at the last look. None: it had not ended."""

    @property
    def did(self) -> Did:
        """What this worker has done so far."""
        return self._meter.did

    def drain(self) -> None:
        """Stop leasing; finish or give back what is in hand."""
        self._give_back(self._leasing.drain())
        if self._outlet is not None:
            self._outlet.drain()
        self._changed.set()

    def wake(self) -> None:
        """There may be work again: look for it now."""
        self.over_as = None
        self._wakes += 1
        self._changed.set()

    async def run(self) -> None:
        """Work until the crawl is over; without `until_finished`, wait for it to be started
        again."""
        try:
            async with asyncio.TaskGroup() as group:
                beside = [group.create_task(self._heartbeat.run())]
                for lender in self._lenders:
                    await lender.open()
                    beside.append(group.create_task(lender.keep_fresh()))
                while (rules := await self._joined()) is not None:
                    self.over_as = None
                    self._visits.begin(rules)
                    self._slots.visit = kept_to_rules(self._visits.visit, rules)
                    with self._watch(rules.lease_s):
                        await self._work(rules)
                for task in beside:
                    task.cancel()
        except BaseExceptionGroup as group_error:
            raise cause_of(group_error) from None
        finally:
            await self._visits.close()
            for lender in self._lenders:
                await lender.close()
            if self._outlet is not None:
                await self._outlet.close()

    def _in_flight(self) -> int:
        return self._leasing.in_flight

    # Waiting for the crawl

    async def _joined(self) -> Rules | None:
        """Wait until the crawl runs, and return its rules. None: there is nothing left to do."""
        while not self._leasing.is_draining:
            self._changed.clear()
            wakes = self._wakes
            stats = await patiently("frontier", self._look)
            if stats is not None and stats.state in (CrawlState.RUNNING, CrawlState.PAUSED):
                return stats.rules
            if stats is not None and stats.state.over:
                if self._outlet is not None:
                    await self._outlet.finished(stats)
                is_done = await self._is_done(stats)
                if self._assignment.until_finished and is_done:
                    return None
                if wakes == self._wakes:  # Otherwise work was added since the last look.
                    self.over_as = stats.state
                self._on_idle()
            await wait_for_event(self._changed, POLL_S)
        return None

    async def _is_done(self, stats: Stats) -> bool:
        """Whether everything that the end of the crawl calls for is done."""
        on_over = self._assignment.on_over
        return on_over is None or await on_over(stats)

    async def _look(self) -> Stats | None:
        try:
            return await self._frontier.stats(self._crawl)
        except UnknownCrawl:
            return None

    # The crawl runs

    async def _work(self, rules: Rules) -> None:
        self._leasing.begin(time.monotonic(), rules.lease_s)
        self._committer = self._new_committer(rules)
        renewals = Renewals(
            self._assignment,
            self._leasing,
            on_lost=self._slots.cancel,
            give_back=self._give_back,
        )
        try:
            async with asyncio.TaskGroup() as group:
                commits = group.create_task(self._committer.run())
                beside = [group.create_task(renewals.run(rules.lease_s))]
                if limit := rules.stop_after_errors:
                    watching = pause_after_errors(self._frontier, self._crawl, limit, self._deaths)
                    beside.append(group.create_task(watching))
                await self._pump()
                await self._settle()
                self._committer.close()
                await commits
                for task in beside:
                    task.cancel()
            await self._leave_shares()
        except BaseExceptionGroup as group_error:
            cause = cause_of(group_error)
            if isinstance(cause, ShoalError):
                await self._give_all_back()
            raise cause from None
        finally:
            self._cancel_visits()
            self._meter.ledger.note(time.monotonic(), 0, Cause.STARVED)

    def _new_committer(self, rules: Rules) -> Committer:
        return Committer(
            self._crawl,
            self._assignment.stores,
            keep_of(rules),
            batch_size=self._assignment.slots * BATCH_PER_SLOT,
            meter=self._meter,
            finish=self._finish,
            on_finished=self._finished,
            on_step=self._account_if_full,
            outlet=self._outlet,
        )

    async def _pump(self) -> None:
        """Lease tasks and start visits until draining begins or the crawl is over."""
        leasing = self._leasing
        while not leasing.is_draining and not leasing.is_over:
            self._changed.clear()
            self._account()
            wait_s = leasing.wait_s(time.monotonic(), self._committer)
            if wait_s is not None and wait_s <= 0:
                await self._lease()
            else:
                await wait_for_event(self._changed, wait_s)

    def _account(self) -> None:
        """Note how many slots have visits and what the others wait for. Called on changes after
        which the pump does not look by itself."""
        leasing = self._leasing
        idle_as = leasing.idle_as(self._committer)
        self._meter.ledger.note(time.monotonic(), leasing.in_flight, idle_as)

    def _account_if_full(self) -> None:
        """Note what idle slots wait for, if no more may be leased: that depends on the step that
        the committer is at."""
        if self._leasing.is_full(self._committer):
            self._account()

    async def _settle(self) -> None:
        """Let visits in flight finish; those that take too long are given back."""
        self._give_back(self._leasing.give_back_ready())
        await self._slots.settle(self._assignment.drain_s)

    async def _give_all_back(self) -> None:
        """Give back every lease after a store has failed. The tasks are not at fault: leases left
        to expire would count as lost, and after some tries as poison. No request may be sent any
        more."""
        self._cancel_visits()
        given_back = [give_up(lease).outcome for lease in self._leasing.held.values()]
        with suppress(ShoalError, TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                await self._frontier.finish(self._crawl, given_back)
        await self._leave_shares()

    async def _leave_shares(self) -> None:
        """Give up this worker's shares of hosts at once. If that fails, they expire by
        themselves."""
        if given_up := self._leasing.shares.leave():
            with suppress(ShoalError, TimeoutError):
                async with asyncio.timeout(DRAIN_S):
                    await self._frontier.lease(self._crawl, Ask(self._name, 0, given_up))

    def _cancel_visits(self) -> None:
        # Otherwise each visit that ends would begin the next.
        self._give_back(self._leasing.give_back_ready())
        self._slots.cancel_all()

    # Leases, from the grant to the end

    async def _lease(self) -> None:
        question = self._leasing.ask(time.monotonic(), self._committer)
        if question is None:
            return
        lease = partial(self._frontier.lease, self._crawl, self._ask(question))
        try:
            grant = await patiently("frontier", lease)
        except UnknownCrawl:
            self._leasing.crawl_gone()
        else:
            self._granted(grant)

    def _ask(self, question: Question) -> Ask:
        room, holdings, slots = question
        if not self._lenders:
            return Ask(self._name, room, holdings)
        pools = tuple(chain.from_iterable(lender.pools for lender in self._lenders))
        return Ask(self._name, room, holdings, pools, slots)

    async def _finish(self, outcomes: list[Outcome]) -> list[Lease]:
        """Finish tries, and in the same call ask for as many new leases as there is room for."""
        await add_surplus(self._frontier, self._crawl, outcomes)
        question = self._leasing.ask(time.monotonic(), self._committer)
        if question is None:
            stale = await self._frontier.finish(self._crawl, outcomes)
            self._leasing.finished_apart()
            return stale
        ask = self._ask(question)
        try:
            stale, grant = await self._frontier.exchange(self._crawl, outcomes, ask)
        except BaseException:
            self._leasing.not_granted()
            raise
        self._granted(grant)
        return stale

    def _granted(self, grant: Grant) -> None:
        if grant.leases and grant.epoch != self._epoch:
            self._epoch = grant.epoch
            self._visits.start_over()
            self._give_back(self._leasing.start_over())
        visit, given_back = self._leasing.granted(grant, time.monotonic())
        for ready in visit:
            self._slots.start(*ready)
        self._give_back(given_back)

    def _answered(self, lease: Lease) -> None:
        if (following := self._leasing.answered(lease)) is not None:
            self._slots.start(*following)
            self._account()

    def _visited(self, report: Report) -> None:
        self._meter.note(report)
        self._committer.put(report)
        leasing = self._leasing
        if (following := leasing.visit_over(report.outcome)) is not None:
            self._slots.start(*following)
        else:
            self._account()
        if leasing.is_short:
            self._changed.set()
        if not leasing.in_flight:
            self._committer.hurry()

    def _give_back(self, leases: Iterable[Lease]) -> None:
        for lease in leases:
            self._committer.put(give_back(lease, sent=False))

    def _finished(self, outcomes: list[Outcome], stale: set[str]) -> None:
        for ready in self._leasing.finished(outcomes, time.monotonic()):
            self._slots.start(*ready)
        confirm, meter = self._visits.confirm, self._meter
        dead = meter.dead
        for outcome in outcomes:
            if outcome.lease.token not in stale:
                confirm(outcome.follow_ups)
                meter.pages += outcome.verdict is Verdict.DONE
                meter.ended += outcome.verdict in ENDING
                meter.dead += outcome.verdict is Verdict.DEAD
                meter.items += outcome.items
        self._deaths.note(meter.dead - dead)
        self._changed.set()
