"""N worker processes on this machine: started, replaced when they die, drained on a signal. N may
change while they work."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import time

import msgspec

from shoal.errors import ConfigError, ShoalError, StorageFailed, UnknownCrawl
from shoal.fleet.child import WorkerOrder
from shoal.frontier.patient import patient
from shoal.frontier.port import Upkeep
from shoal.runtime.orders import Child, Ended, child_process
from shoal.runtime.patience import wait_for_event
from shoal.runtime.process import is_dead_here, worker_name
from shoal.worker.meter import Did

RESTART_WAIT_S, LONGEST_WAIT_S = 1.0, 60.0
MAX_FRUITLESS = 5
"""Workers that may die in a row, in one place, without the crawl having moved."""
SHORT_S = 10.0
"""Who lives no longer has hardly begun. Others may move the crawl meanwhile."""
FEW_SHORT = 3
"""So many may do so in a row, in one place. From then on each waits longer than the one before."""

_read_did = msgspec.json.Decoder(Did).decode

log = logging.getLogger("shoal")


class WorkerFailed(ShoalError):
    """A worker cannot go on, and neither could another one. The message is what it said."""


class Fleet:
    """Worker processes of one crawl. `run` returns when all have ended."""

    def __init__(self, order: WorkerOrder, frontier: Upkeep, *, stays: bool = False) -> None:
        """As many as the order says. `stays`: none to begin with, and it runs on when none is left:
        somebody resizes it."""
        self._order = order
        self._frontier = frontier
        self._stays = stays
        self._size = 0
        self._places: list[_Place] = []
        self._changed = asyncio.Event()
        self._is_draining = False
        self._failure: ShoalError | None = None
        self.deaths = 0
        """Workers that have died."""
        self.did = Did()
        """What its workers have done that have ended in good order."""

    @property
    def pids(self) -> list[int]:
        """The processes that there are, those that are about to leave too."""
        return [place.child.pid for place in self._places if place.child is not None]

    async def run(self) -> None:
        """Keep the workers running until their work is over. Raises WorkerFailed, or
        ConfigError if that is what a worker has said. May be run again when there is more."""
        if not self._stays:
            self._size = self._order.settings.workers
        async with asyncio.TaskGroup() as group:
            while not self._is_draining and (self._size or self._places or self._stays):
                self._changed.clear()
                for _ in range(self._size - len(self._staying())):
                    place = _Place()
                    self._places.append(place)
                    group.create_task(self._keep(place))
                self._let_one_go()
                await self._changed.wait()
        if self._failure is not None:
            raise self._failure

    def resize(self, size: int) -> None:
        """From now on so many workers. New ones begin at once; those that are too many are drained
        one after the other, the youngest first."""
        self._size = size
        self._changed.set()

    def drain(self) -> None:
        """No new work; what is in hand is finished or given back."""
        self._is_draining = True
        self._changed.set()
        for place in self._places:
            place.leave(signal.SIGTERM)

    def kill(self) -> None:
        """Stop at once. What was in hand comes back to the queue when its leases are taken back."""
        self._is_draining = True
        self._changed.set()
        for place in self._places:
            place.leave(signal.SIGKILL)

    def _staying(self) -> list[_Place]:
        return [place for place in self._places if not place.leaving.is_set()]

    def _let_one_go(self) -> None:
        staying = self._staying()
        if len(staying) > self._size and len(staying) == len(self._places):
            staying[-1].leave(signal.SIGTERM)

    async def _keep(self, place: _Place) -> None:
        try:
            await self._keep_filled(place)
        finally:
            self._places.remove(place)
            self._changed.set()

    async def _keep_filled(self, place: _Place) -> None:
        """One worker's place: filled again when its worker dies."""
        fruitless = short = 0
        while not place.leaving.is_set():
            before, began = await self._progress(), time.monotonic()
            ended = await self._run_one(place)
            if ended.code == 0:
                self.did += _read_did(ended.last_words) if ended.last_words else Did()
                self._one_is_done(place)
                return
            short = short + 1 if time.monotonic() - began < SHORT_S else 0
            fruitless = fruitless + 1 if await self._progress() == before else 0
            if not ended.gave_up and fruitless >= MAX_FRUITLESS:
                self._failure = self._failure or WorkerFailed(f"workers keep dying ({ended.how})")
            if self._failure is not None:
                self.drain()
            if not place.leaving.is_set():
                self.deaths += 1
                wait_s = _restart_wait_s(fruitless, short)
                after = f" in {wait_s:.0f} s" if wait_s else ""
                log.warning("a worker died (%s); starting another%s", ended.how, after)
                await wait_for_event(place.leaving, wait_s)

    def _one_is_done(self, place: _Place) -> None:
        """Whoever ends by himself finds nothing to do, or was told to by somebody else: nobody
        takes his place."""
        if not place.leaving.is_set():
            self._size = max(self._size - 1, 0)

    async def _progress(self) -> tuple[int, int] | None:
        """What moves while workers do anything at all, if only die with a task in hand."""
        try:
            stats = await patient(self._frontier).stats(self._order.crawl)
        except (UnknownCrawl, StorageFailed):
            return None
        return stats.ended, stats.lost

    async def _run_one(self, place: _Place) -> Ended:
        async with child_process("shoal.fleet.child", on_stderr=_say) as worker:
            place.child = worker
            name = worker_name(worker.pid)
            try:
                if place.leaving.is_set():  # It was told to while it was being started.
                    worker.send_signal(signal.SIGTERM)
                worker.tell(msgspec.structs.replace(self._order, worker=name))
                ended = await worker.ended()
            finally:
                place.child = None
        if ended.gave_up and self._failure is None:
            kind = ConfigError if ended.is_misconfigured else WorkerFailed
            self._failure = kind(ended.last_words)
        if ended.code != 0:
            await release(self._frontier, self._order.crawl, name)
        return ended


class _Place:
    """Where a worker is, one after the other as they die, until it is told to leave."""

    def __init__(self) -> None:
        self.child: Child | None = None
        self.leaving = asyncio.Event()

    def leave(self, number: int) -> None:
        """Send its worker a signal, and have no other after it."""
        self.leaving.set()
        if self.child is not None:
            self.child.send_signal(number)


def _restart_wait_s(fruitless: int, short: int) -> float:
    if fruitless or short < FEW_SHORT:
        return RESTART_WAIT_S if fruitless else 0.0
    return float(min(RESTART_WAIT_S * 2 ** (short - FEW_SHORT + 1), LONGEST_WAIT_S))


async def release_dead(frontier: Upkeep, crawl: str) -> None:
    """Take back what workers held that died on this machine, an earlier run's for instance."""
    try:
        holders = await patient(frontier).holders(crawl)
    except UnknownCrawl:
        return
    for worker in holders:
        if is_dead_here(worker):
            await release(frontier, crawl, worker)


async def release(frontier: Upkeep, crawl: str, worker: str) -> None:
    """What a dead worker held need not wait for its leases to expire."""
    try:
        await patient(frontier).release(crawl, worker)
    except (UnknownCrawl, StorageFailed):  # Then they expire, or the next run takes them back.
        return


_stderr = sys.stderr
"""As it was when nothing was shown yet. There may be none."""


def _say(text: str) -> None:
    if _stderr is not None:
        _stderr.write(text)
