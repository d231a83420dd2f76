"""A worker's signs of life, once a second; and the seeds that others left, which they tell of."""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from shoal.errors import ConfigError, UnknownCrawl
from shoal.frontier.patient import patient
from shoal.frontier.port import WorkSource
from shoal.frontier.values import CrawlState, Pulse
from shoal.runtime.process import machine_name, rss_bytes
from shoal.seeds.seeding import collect
from shoal.version import __version__

BEAT_EVERY_S = 1.0
RECENT_BEATS = 10
"""The beats over which pages per second are counted."""


class Heartbeat:
    """Beats for one worker. `pages` is for the worker to count up."""

    def __init__(
        self, frontier: WorkSource, crawl: str, worker: str, in_flight: Callable[[], int]
    ) -> None:
        self.pages = 0
        self._frontier = patient(frontier)
        self._crawl = crawl
        self._worker = worker
        self._in_flight = in_flight
        self._samples = deque([(time.monotonic(), 0)], maxlen=RECENT_BEATS + 1)

    async def run(self) -> None:
        """Beat until cancelled. A crawl that is not there yet, or not any more, is no error."""
        while True:
            with suppress(UnknownCrawl):
                await self._beat()
            await asyncio.sleep(BEAT_EVERY_S)

    async def _beat(self) -> None:
        pulse = self._pulse()
        if await self._frontier.beat(self._crawl, pulse):
            await self._collect()

    async def _collect(self) -> None:
        """Seeds of a crawl that nobody has started wait for its rules, those of a cancelled one
        for ever; those of a finished one make it run again."""
        stats = await self._frontier.stats(self._crawl)
        if stats.state in (CrawlState.NEW, CrawlState.CANCELLED):
            return
        with suppress(ConfigError):  # It was cancelled this very moment.
            await collect(self._frontier, self._crawl, stats.rules)

    def _pulse(self) -> Pulse:
        return Pulse(
            worker=self._worker,
            host=machine_name(),
            pid=os.getpid(),
            version=__version__,
            in_flight=self._in_flight(),
            pages=self.pages,
            pages_per_s=self._recent_rate(),
            rss_bytes=rss_bytes(),
        )

    def _recent_rate(self) -> float:
        now = time.monotonic()
        since, pages_then = self._samples[0]
        self._samples.append((now, self.pages))
        return (self.pages - pages_then) / (now - since) if now > since else 0.0
