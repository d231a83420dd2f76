"""N worker processes on this machine: started, replaced when they die, drained on a signal."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from contextlib import suppress

import msgspec

from shoal.config import Settings
from shoal.errors import ShoalError, StorageFailed, UnknownCrawl
from shoal.fleet.child import GAVE_UP, Order
from shoal.frontier.patient import patient
from shoal.frontier.port import Upkeep
from shoal.runtime.patience import wait_for_event
from shoal.runtime.process import is_dead_here, worker_name

RESTART_WAIT_S = 1.0
MAX_FRUITLESS = 5
"""Workers that may die in a row, in one place, without the crawl having moved."""

log = logging.getLogger("shoal")


START_CHILD = """
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
from shoal.fleet.child import main
raise SystemExit(main())
"""
"""A Ctrl-C reaches the whole process group, also those who are still importing."""


class WorkerFailed(ShoalError):
    """A worker cannot go on, and neither could another one. The message is what it said."""


class Fleet:
    """Worker processes of one crawl. `run` returns when all have ended."""

    def __init__(
        self,
        crawl: str,
        targets: list[str],
        settings: Settings,
        frontier: Upkeep,
        *,
        until_finished: bool = True,
        plants: bool = True,
    ) -> None:
        self._order = Order("", crawl, targets, settings, until_finished, plants)
        self._frontier = frontier
        self._processes: set[asyncio.subprocess.Process] = set()
        self._draining = asyncio.Event()
        self._failure: str | None = None

    async def run(self) -> None:
        """Keep the workers running until their work is over. Raises WorkerFailed."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._order.settings.workers):
                group.create_task(self._keep_one())
        if self._failure is not None:
            raise WorkerFailed(self._failure)

    def drain(self) -> None:
        """No new work; what is in hand is finished or given back."""
        self._draining.set()
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Stop at once. What was in hand comes back to the queue when its leases are taken back."""
        self._draining.set()
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        for process in self._processes:
            if process.returncode is None:
                process.send_signal(number)

    async def _keep_one(self) -> None:
        """One worker's place: filled again when its worker dies."""
        fruitless = 0
        while not self._draining.is_set():
            before = await self._progress()
            code = await self._run_one()
            if code == 0:
                return
            fruitless = fruitless + 1 if await self._progress() == before else 0
            if code != GAVE_UP and fruitless >= MAX_FRUITLESS:
                self._failure = self._failure or f"workers keep dying ({_how(code)})"
            if self._failure is not None:
                self.drain()
            if not self._draining.is_set():
                log.warning("a worker died (%s); starting another", _how(code))
            if fruitless:
                await wait_for_event(self._draining, RESTART_WAIT_S)

    async def _progress(self) -> tuple[int, int] | None:
        """What moves while workers do anything at all, if only die with a task in hand."""
        try:
            stats = await patient(self._frontier).stats(self._order.crawl)
        except (UnknownCrawl, StorageFailed):
            return None
        return stats.ended, stats.lost

    async def _run_one(self) -> int:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", START_CHILD),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None  # noqa: S101 - we asked for a pipe
        self._processes.add(process)
        name = worker_name(process.pid)
        try:
            await self._instruct(process, name)
            last_words, _ = await asyncio.gather(process.stdout.read(), self._forward(process))
            code = await process.wait()
        finally:
            self._processes.discard(process)
            if process.returncode is None:
                process.kill()
                await process.wait()
        if code == GAVE_UP and self._failure is None:
            self._failure = last_words.decode("utf-8", "replace")
        if code != 0:
            await release(self._frontier, self._order.crawl, name)
        return code

    async def _instruct(self, process: asyncio.subprocess.Process, name: str) -> None:
        assert process.stdin is not None  # noqa: S101 - we asked for a pipe
        order = msgspec.structs.replace(self._order, worker=name)
        # It may have been killed already; uvloop then raises a RuntimeError.
        with suppress(ProcessLookupError, RuntimeError):
            if self._draining.is_set():  # The signal came while it was being started.
                process.send_signal(signal.SIGTERM)
            process.stdin.write(msgspec.json.encode(order) + b"\n")

    async def _forward(self, process: asyncio.subprocess.Process) -> None:
        """Pass on what the worker says, until it ends."""
        assert process.stderr is not None  # noqa: S101 - we asked for a pipe
        while text := await process.stderr.read(65536):
            _say(text.decode("utf-8", "replace"))


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


def _how(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


_stderr = sys.stderr
"""As it was when nothing was shown yet. There may be none."""


def _say(text: str) -> None:
    if _stderr is not None:
        _stderr.write(text)
