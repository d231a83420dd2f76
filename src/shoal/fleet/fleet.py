"""N worker processes on this machine: started, replaced when they die, drained on a signal."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys

import msgspec

from shoal.errors import ConfigError, ShoalError, StorageFailed, UnknownCrawl
from shoal.fleet.child import WorkerOrder
from shoal.frontier.patient import patient
from shoal.frontier.port import Upkeep
from shoal.runtime.orders import Child, Ended, child_process
from shoal.runtime.patience import wait_for_event
from shoal.runtime.process import is_dead_here, worker_name
from shoal.worker.meter import Did

RESTART_WAIT_S = 1.0
MAX_FRUITLESS = 5
"""Workers that may die in a row, in one place, without the crawl having moved."""

_read_did = msgspec.json.Decoder(Did).decode

log = logging.getLogger("shoal")


class WorkerFailed(ShoalError):
    """A worker cannot go on, and neither could another one. The message is what it said."""


class Fleet:
    """Worker processes of one crawl. `run` returns when all have ended."""

    def __init__(self, order: WorkerOrder, frontier: Upkeep) -> None:
        self._order = order
        self._frontier = frontier
        self._workers: set[Child] = set()
        self._draining = asyncio.Event()
        self._failure: ShoalError | None = None
        self.did = Did()
        """What its workers have done that have ended in good order."""

    async def run(self) -> None:
        """Keep the workers running until their work is over. Raises WorkerFailed, or
        ConfigError if that is what a worker has said."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._order.settings.workers):
                group.create_task(self._keep_one())
        if self._failure is not None:
            raise self._failure

    def drain(self) -> None:
        """No new work; what is in hand is finished or given back."""
        self._draining.set()
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Stop at once. What was in hand comes back to the queue when its leases are taken back."""
        self._draining.set()
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        for worker in self._workers:
            worker.send_signal(number)

    async def _keep_one(self) -> None:
        """One worker's place: filled again when its worker dies."""
        fruitless = 0
        while not self._draining.is_set():
            before = await self._progress()
            ended = await self._run_one()
            if ended.code == 0:
                self.did += _read_did(ended.last_words) if ended.last_words else Did()
                return
            fruitless = fruitless + 1 if await self._progress() == before else 0
            if not ended.gave_up and fruitless >= MAX_FRUITLESS:
                self._failure = self._failure or WorkerFailed(f"workers keep dying ({ended.how})")
            if self._failure is not None:
                self.drain()
            if not self._draining.is_set():
                log.warning("a worker died (%s); starting another", ended.how)
            if fruitless:
                await wait_for_event(self._draining, RESTART_WAIT_S)

    async def _progress(self) -> tuple[int, int] | None:
        """What moves while workers do anything at all, if only die with a task in hand."""
        try:
            stats = await patient(self._frontier).stats(self._order.crawl)
        except (UnknownCrawl, StorageFailed):
            return None
        return stats.ended, stats.lost

    async def _run_one(self) -> Ended:
        async with child_process("shoal.fleet.child", on_stderr=_say) as worker:
            self._workers.add(worker)
            name = worker_name(worker.pid)
            try:
                if self._draining.is_set():  # The signal came while it was being started.
                    worker.send_signal(signal.SIGTERM)
                worker.tell(msgspec.structs.replace(self._order, worker=name))
                ended = await worker.ended()
            finally:
                self._workers.discard(worker)
        if ended.gave_up and self._failure is None:
            kind = ConfigError if ended.is_misconfigured else WorkerFailed
            self._failure = kind(ended.last_words)
        if ended.code != 0:
            await release(self._frontier, self._order.crawl, name)
        return ended


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
