"""Several spiders, each in a crawl of its own: so many side by side, then the others."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from shoal.config import Settings
from shoal.errors import ConfigError, ShoalError
from shoal.fleet.crawl import Watch, run_crawl
from shoal.fleet.summary import Summary
from shoal.runtime.signals import HasProcesses, Workers, stopped_by_signals
from shoal.spider.spider import Spider

SHOWN_S = 3.0
WORST = (0, 3, 1, 2)
"""Exit codes, from the best to the worst."""

log = logging.getLogger("shoal")


class PlannedCrawl(msgspec.Struct, frozen=True):
    """A spider that is to run: its target, its class, its settings."""

    target: str
    spider: type[Spider]
    settings: Settings

    @property
    def crawl(self) -> str:
        """The name of its crawl."""
        return self.settings.name or self.spider.name


class EndedCrawl(msgspec.Struct):
    """How it ended: with a summary, or with an error if it could not run."""

    crawl: str
    target: str
    summary: Summary | None = None
    error: ShoalError | None = None

    @property
    def exit_code(self) -> int:
        """As `shoal crawl` of it alone."""
        if self.summary is not None:
            return self.summary.exit_code
        return 2 if isinstance(self.error, ConfigError) else 1


def worst_of(codes: Sequence[int]) -> int:
    """The exit code of all of them."""
    return max(codes, key=WORST.index, default=0)


async def run_several(
    planned: Sequence[PlannedCrawl], *, at_once: int, fresh: bool, watch: Watch
) -> list[EndedCrawl]:
    """Run them all. One that cannot run keeps no other from running. A signal stops them all."""
    together = _Together(planned, at_once, watch, fresh=fresh)
    with stopped_by_signals(together):
        await together.run()
    return together.ended


class _Together:
    """The workers of all crawls, to whoever stops them."""

    def __init__(
        self, planned: Sequence[PlannedCrawl], at_once: int, watch: Watch, *, fresh: bool
    ) -> None:
        self._planned = planned
        self._room = asyncio.Semaphore(at_once)
        self._watch = watch
        self._fresh = fresh
        self._is_draining = False
        self._running: set[str] = set()
        self._working: dict[int, tuple[Workers, asyncio.Event]] = {}
        self.ended = [EndedCrawl(each.crawl, each.target) for each in planned]

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for planned, ended in zip(self._planned, self.ended, strict=True):
                group.create_task(self._run_one(planned, ended))

    def drain(self) -> None:
        self._is_draining = True
        for workers, stopping in self._working.values():
            stopping.set()
            workers.drain()

    def kill(self) -> None:
        for workers, _ in self._working.values():
            if isinstance(workers, HasProcesses):
                workers.kill()

    async def _run_one(self, planned: PlannedCrawl, ended: EndedCrawl) -> None:
        async with self._room:
            if self._is_draining:
                ended.error = ShoalError("not begun")
                return
            self._running.add(planned.crawl)
            try:
                ended.summary = await run_crawl(
                    planned.spider,
                    planned.settings,
                    targets=[planned.target],
                    fresh=self._fresh,
                    watch=self._in_turn(planned.crawl),
                    stopped=self._stopped,
                )
            except ShoalError as error:
                ended.error = error
            except Exception as error:
                log.error("crawl '%s' failed", planned.crawl, exc_info=error)
                ended.error = ShoalError(f"{type(error).__name__}: {error}")
            finally:
                self._running.discard(planned.crawl)

    def _in_turn(self, crawl: str) -> Watch:
        """There is one line to show how far they are: each has it for some seconds."""

        def watch(seen: Any) -> None:
            crawls = sorted(self._running)
            if crawls[int(time.monotonic() / SHOWN_S) % len(crawls)] == crawl:
                self._watch(seen)

        return watch

    @contextmanager
    def _stopped(self, workers: Workers) -> Iterator[asyncio.Event]:
        stopping = asyncio.Event()
        self._working[id(workers)] = workers, stopping
        if self._is_draining:
            self.drain()
        try:
            yield stopping
        finally:
            del self._working[id(workers)]
