"""Sends a worker's signs of life once a second, and collects the seeds that others left when the
answer reports some."""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from shoal.core.ledger import Work
from shoal.errors import ConfigError, UnknownCrawl
from shoal.frontier.patient import patient
from shoal.frontier.port import WorkSource
from shoal.frontier.values import CrawlState, Pulse
from shoal.runtime import machine
from shoal.runtime.process import machine_name, rss_bytes
from shoal.seeds.seeding import collect
from shoal.version import __version__
from shoal.worker.meter import Meter

BEAT_EVERY_S = 1.0
RECENT_BEATS = 10
"""The number of beats over which pages per second are counted."""
LATELY_BEATS = 60
"""The number of beats that a worker's recent work is reported for."""


class Heartbeat:
    """Beats for one worker, whose work a meter counts."""

    def __init__(
        self,
        frontier: WorkSource,
        crawl: str,
        worker: str,
        meter: Meter,
        in_flight: Callable[[], int],
        spider_version: str = "",
    ) -> None:
        self._frontier = patient(frontier)
        self._crawl = crawl
        self._worker = worker
        self._meter = meter
        self._in_flight = in_flight
        self._spider_version = spider_version
        self._done = deque([self._work()], maxlen=LATELY_BEATS + 1)
        self._cores, self._memory_bytes = machine.cores(), machine.memory_bytes()

    async def run(self) -> None:
        """Beat until cancelled. A crawl that does not exist yet, or no longer exists, is no
        error."""
        while True:
            with suppress(UnknownCrawl):
                await self._beat()
            await asyncio.sleep(BEAT_EVERY_S)

    async def _beat(self) -> None:
        pulse = self._pulse()
        if await self._frontier.beat(self._crawl, pulse):
            await self._collect()

    async def _collect(self) -> None:
        """Collect seeds that others left. Those of a crawl that nobody has started wait for its
        rules, those of a cancelled crawl wait forever, and those of a finished one make it run
        again."""
        stats = await self._frontier.stats(self._crawl)
        if stats.state in (CrawlState.NEW, CrawlState.CANCELLED):
            return
        with suppress(ConfigError):  # The crawl was cancelled this very moment.
            await collect(self._frontier, self._crawl, stats.rules)

    def _pulse(self) -> Pulse:
        meter, done = self._meter, self._work()
        self._done.append(done)
        recently = done - self._done[max(len(self._done) - RECENT_BEATS - 1, 0)]
        return Pulse(
            worker=self._worker,
            host=machine_name(),
            pid=os.getpid(),
            version=__version__,
            spider_version=self._spider_version,
            in_flight=self._in_flight(),
            pages=meter.pages,
            pages_per_s=recently.pages / recently.seconds if recently.seconds else 0.0,
            rss_bytes=rss_bytes(),
            cpu_s=time.process_time(),
            backlog=meter.backlog,
            fetches=meter.fetches,
            saves=meter.saves,
            responses=meter.responses,
            body_bytes=meter.body_bytes,
            wire_bytes=meter.wire_bytes,
            slots=meter.ledger.slots,
            slot_time=done.slots,
            lately=done - self._done[0],
            cores=self._cores,
            memory_bytes=self._memory_bytes,
        )

    def _work(self) -> Work:
        """Return the work done so far."""
        meter, cpu = self._meter, machine.cpu_time()
        return Work(
            seconds=time.monotonic(),
            pages=meter.pages,
            ended=meter.ended,
            slots=meter.slot_time,
            fetches=meter.fetches.count,
            fetch_s=meter.fetches.total_s,
            saves=meter.saves.count,
            save_s=meter.saves.total_s,
            finish_s=meter.finishing_s,
            wire_bytes=meter.wire_bytes,
            main_s=time.thread_time(),
            queued_s=machine.queued_s(),
            machine_s=cpu.busy_s,
            stolen_s=cpu.stolen_s,
        )
