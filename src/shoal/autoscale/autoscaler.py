"""Keeps as many workers on this machine as a crawl can use.

It looks at the crawl every few seconds. The rule in insight/advise/scaling.py decides how many
workers there should be, and a fleet starts and drains them. Workers that others run on the same
crawl count towards that number.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

import msgspec

from shoal.autoscale.cost_meter import CostMeter
from shoal.errors import StorageError, UnknownCrawl
from shoal.fleet.child import WorkerOrder
from shoal.fleet.fleet import Fleet, WorkerFailed
from shoal.frontier.port import Frontier, QueriesAndNotes
from shoal.frontier.values import Pulse, Stats
from shoal.insight.advise.look import look_at
from shoal.insight.advise.scaler import Scaler
from shoal.insight.advise.scaling import Staff
from shoal.insight.advise.situation import Look
from shoal.insight.figures import counted
from shoal.runtime.patience import wait_for_event
from shoal.runtime.process import is_dead_here, worker_name

LOOK_EVERY_S = 3.0
HOSTS_SEEN = 100
"""How many hosts are looked at one by one. Fewer than for advice: a number that is a little wrong
is soon corrected."""
BACKOFF_FIRST_S, BACKOFF_LIMIT_S = 15.0, 600.0
"""The first and the longest pause before a new fleet replaces one whose workers kept dying."""

log = logging.getLogger("shoal")


class Resized(msgspec.Struct, frozen=True, kw_only=True):
    """A new decision on the number of workers."""

    was: int
    workers: int
    why: str
    spent: float | None = None
    """What the workers on this machine have cost so far, if their price is known."""

    @property
    def line(self) -> str:
        """The decision in one line for people."""
        if self.was == self.workers:
            return f"{counted(self.was, 'worker')} as before: {self.why}"
        return f"{self.was} -> {counted(self.workers, 'worker')}: {self.why}"


class Autoscaler:
    """Runs workers of one crawl on this machine, as many as the crawl can use."""

    def __init__(
        self,
        order: WorkerOrder,
        frontier: Frontier,
        scaler: Scaler,
        cost_meter: CostMeter,
        *,
        tell: Callable[[Resized], object],
    ) -> None:
        """`tell` is called with each new decision."""
        self._order = order
        self._frontier = frontier
        self._scaler = scaler
        self._cost_meter = cost_meter
        self._tell = tell
        self._fleet = self._new_fleet()
        self._deaths = 0
        self._died_at: float | None = None
        self._is_away = False
        self._draining = asyncio.Event()

    async def run(self) -> None:
        """Scale until told to stop, or, if the order is to work until finished, until the crawl is
        over. Raises BudgetSpent, and ConfigError if workers find a mistake in their settings."""
        pause_s = BACKOFF_FIRST_S
        while not self._draining.is_set():
            began = time.monotonic()
            try:
                await self._run_fleet()
            except WorkerFailed as error:
                if time.monotonic() - began > BACKOFF_LIMIT_S:
                    pause_s = BACKOFF_FIRST_S
                log.error("%s; starting again with few in %d s", error, pause_s)
                await wait_for_event(self._draining, pause_s)
                pause_s = min(pause_s * 2, BACKOFF_LIMIT_S)
                self._fleet = self._new_fleet()
            else:
                return

    def drain(self) -> None:
        """Start no more workers, and have the running ones finish or give back their tasks."""
        self._draining.set()
        self._fleet.drain()

    def kill(self) -> None:
        """Kill all workers."""
        self._draining.set()
        self._fleet.kill()

    def _new_fleet(self) -> Fleet:
        self._scaler.start_over()
        self._deaths = 0
        return Fleet(self._order, self._frontier, stays=True)

    async def _run_fleet(self) -> None:
        """Scale one fleet until it ends. It ends by itself, with an error, if its workers cannot go
        on."""
        scaling = asyncio.create_task(self._scale())
        try:
            await self._fleet.run()
        finally:
            scaling.cancel()
            ended = (await asyncio.gather(scaling, return_exceptions=True))[0]
        if isinstance(ended, Exception):
            raise ended

    async def _scale(self) -> None:
        try:
            while not await self._is_over():
                await wait_for_event(self._draining, LOOK_EVERY_S)
        finally:
            self._fleet.drain()

    async def _is_over(self) -> bool:
        """Look at the crawl once and resize the fleet. Whether the autoscaler's work is over.
        Raises BudgetSpent."""
        if self._draining.is_set():
            return True
        pids = self._fleet.pids
        self._cost_meter.charge(len(pids), time.monotonic())
        try:
            look = await look_here(self._frontier, self._order.crawl)
        except StorageError as error:
            self._note_away(error, len(pids))
            return False
        self._is_away = False
        if look is not None and self._order.until_finished and _is_done(look.stats):
            return not pids  # Workers end by themselves, after calling the hook `closed` if needed.
        self._resize(look, pids)
        return False

    def _note_away(self, error: StorageError, workers: int) -> None:
        if not self._is_away:
            here = f"{counted(workers, 'worker')} here {'stays' if workers == 1 else 'stay'}"
            log.warning("the frontier is away (%s): %s", error, here)
        self._is_away = True

    def _resize(self, look: Look | None, pids: list[int]) -> None:
        before, now = self._scaler.staffing, time.monotonic()
        if self._fleet.deaths > self._deaths:
            self._deaths, self._died_at = self._fleet.deaths, now
        staff = Staff(
            alive=len(pids),
            others=len(others_of(look.workers, pids)) if look is not None else 0,
            died_at=self._died_at,
        )
        staffing = self._scaler.decide(look, staff, now)
        self._fleet.resize(staffing.workers)
        was = before.workers if before is not None else 0
        hindrance = before.hindrance if before is not None else None
        if staffing.workers != was or staffing.hindrance not in (None, hindrance):
            spent = self._cost_meter.spent
            self._tell(Resized(was=was, workers=staffing.workers, why=staffing.why, spent=spent))


def _is_done(stats: Stats) -> bool:
    return stats.state.over and not stats.inbox


async def look_here(frontier: QueriesAndNotes, crawl: str) -> Look | None:
    """Look at the crawl, without the workers that have died on this machine: the frontier lists
    these for some seconds more. None if the crawl does not exist yet."""
    try:
        look = await look_at(frontier, crawl, time.time(), HOSTS_SEEN)
    except UnknownCrawl:
        return None
    living = [pulse for pulse in look.workers if not is_dead_here(pulse.worker)]
    return msgspec.structs.replace(look, workers=living)


def others_of(workers: list[Pulse], pids: list[int]) -> list[Pulse]:
    """The workers that this process did not start."""
    own = set(map(worker_name, pids))
    return [pulse for pulse in workers if pulse.worker not in own]
