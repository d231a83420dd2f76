"""Runs N worker processes on this machine: starts them, replaces those that die, drains them on a
signal. N may change while they work."""

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
from shoal.runtime import logs
from shoal.runtime.orders import FAILED, Child, Ended, child_process
from shoal.runtime.patience import wait_for_event
from shoal.runtime.process import is_dead_here, worker_name
from shoal.worker.meter import Did

RESTART_WAIT_S, LONGEST_WAIT_S = 1.0, 60.0
MAX_FRUITLESS = 5
"""How many workers may die in a row, in one place, while the crawl makes no progress."""
SHORT_LIFE_S = 10.0
"""A worker that dies within this time has hardly begun. Such deaths are counted apart, because
other workers may advance the crawl meanwhile."""
SHORT_LIVES_UNTIL_WAIT = 3
"""From this many such deaths in a row, in one place, each restart waits longer than the last."""

_read_did = msgspec.json.Decoder(Did).decode

log = logging.getLogger("shoal")


class WorkerFailed(ShoalError):
    """A worker cannot go on, and a replacement could not either. The message is its own."""


class Fleet:
    """Worker processes of one crawl. `run` returns when all have ended."""

    def __init__(self, order: WorkerOrder, frontier: Upkeep, *, stays: bool = False) -> None:
        """Have as many workers as the order says.

        With `stays`, begin with none and keep running when none is left: the caller resizes it.
        """
        self._order = order
        self._frontier = frontier
        self._stays = stays
        self._size = self._first_size = 0 if stays else order.settings.workers
        self._places: list[_Place] = []
        self._changed = asyncio.Event()
        self._is_draining = False
        self._failure: ShoalError | None = None
        self.deaths = 0
        """How many workers have died."""
        self.did = Did()
        """What the workers that ended normally have done, in total."""

    @property
    def pids(self) -> list[int]:
        """The process IDs of all running workers, including those that are draining."""
        return [place.child.pid for place in self._places if place.child is not None]

    async def run(self) -> None:
        """Keep the workers running until their work is over. May be called again for more work.

        Raises WorkerFailed if workers cannot go on, or ConfigError if a worker reports that.
        """
        async with asyncio.TaskGroup() as group:
            while not self._is_draining and (self._size or self._places or self._stays):
                self._changed.clear()
                for _ in range(self._size - len(self._staying())):
                    place = _Place()
                    self._places.append(place)
                    group.create_task(self._keep(place))
                self._let_one_go()
                await self._changed.wait()
        self._size = self._first_size  # Every worker that ended has decremented it.
        if self._failure is not None:
            raise self._failure

    def resize(self, size: int) -> None:
        """Change the number of workers. New ones start at once; surplus ones are drained one after
        the other, the youngest first."""
        self._size = size
        self._changed.set()

    def drain(self) -> None:
        """Take no new tasks; finish or give back those in hand."""
        self._is_draining = True
        self._changed.set()
        for place in self._places:
            place.leave(signal.SIGTERM)

    def kill(self) -> None:
        """Stop at once. Tasks in hand return to the queue when their leases are taken back."""
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
        """Keep a worker running in a place: start another whenever it dies."""
        fruitless = short = 0
        while not place.leaving.is_set():
            before, began = await self._progress(), time.monotonic()
            ended = await self._run_one(place)
            if ended.code == 0:
                self.did += _read_did(ended.last_words) if ended.last_words else Did()
                self._do_not_replace(place)
                return
            short = short + 1 if time.monotonic() - began < SHORT_LIFE_S else 0
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

    def _do_not_replace(self, place: _Place) -> None:
        """Do not replace a worker that ended normally: it found nothing to do, or was drained from
        elsewhere."""
        if not place.leaving.is_set():
            self._size = max(self._size - 1, 0)

    async def _progress(self) -> tuple[int, int] | None:
        """Counts that grow whenever workers do anything, even if they only die holding a task."""
        try:
            stats = await patient(self._frontier).stats(self._order.crawl)
        except (UnknownCrawl, StorageFailed):
            return None
        return stats.ended, stats.lost

    async def _run_one(self, place: _Place) -> Ended:
        """Run a worker to its end. One that this machine has no room for counts as dead, so that
        the others go on."""
        try:
            return await self._run_child(place)
        except OSError as error:  # Too many processes or open files.
            log.error("a worker could not be started: %s", error)
            return Ended(FAILED, "")

    async def _run_child(self, place: _Place) -> Ended:
        async with child_process("shoal.fleet.child", on_stderr=_say) as worker:
            place.child = worker
            name = worker_name(worker.pid)
            try:
                if place.leaving.is_set():  # leave() was called while the process started.
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
    """A place for one worker at a time: each that dies is replaced, until `leave` is called."""

    def __init__(self) -> None:
        self.child: Child | None = None
        self.leaving = asyncio.Event()

    def leave(self, number: int) -> None:
        """Send the worker a signal, and let no other follow it."""
        self.leaving.set()
        if self.child is not None:
            self.child.send_signal(number)


def _restart_wait_s(fruitless: int, short: int) -> float:
    if fruitless or short < SHORT_LIVES_UNTIL_WAIT:
        return RESTART_WAIT_S if fruitless else 0.0
    return float(min(RESTART_WAIT_S * 2 ** (short - SHORT_LIVES_UNTIL_WAIT + 1), LONGEST_WAIT_S))


async def release_dead(frontier: Upkeep, crawl: str) -> None:
    """Release the leases of workers that died on this machine, for example in an earlier run."""
    try:
        holders = await patient(frontier).holders(crawl)
    except UnknownCrawl:
        return
    for worker in holders:
        if is_dead_here(worker):
            await release(frontier, crawl, worker)


async def release(frontier: Upkeep, crawl: str, worker: str) -> None:
    """Release a dead worker's leases, so that its tasks need not wait for them to expire."""
    try:
        await patient(frontier).release(crawl, worker)
    except (UnknownCrawl, StorageFailed):  # They expire, or the next run takes them back.
        return


_stderr = sys.stderr
"""The stderr at import, before the live display replaces it. None if the process has none."""


def _say(text: str) -> None:
    if _stderr is not None:
        _stderr.write(logs.over_progress(_stderr) + text)
