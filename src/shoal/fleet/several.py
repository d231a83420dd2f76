"""Runs several spiders, each in a crawl of its own, a limited number at the same time."""

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
"""Exit codes, from best to worst."""

log = logging.getLogger("shoal")


class PlannedCrawl(msgspec.Struct, frozen=True):
    """A spider to run: its target, class and settings."""

    target: str
    spider: type[Spider]
    settings: Settings

    @property
    def crawl(self) -> str:
        """The crawl's name."""
        return self.settings.name or self.spider.name


class EndedCrawl(msgspec.Struct):
    """How a crawl ended: with a summary, or with an error if it could not run."""

    crawl: str
    target: str
    summary: Summary | None = None
    error: ShoalError | None = None

    @property
    def exit_code(self) -> int:
        """The exit code that `shoal crawl` of this crawl alone would have."""
        if self.summary is not None:
            return self.summary.exit_code
        return 2 if isinstance(self.error, ConfigError) else 1


def worst_of(codes: Sequence[int]) -> int:
    """The exit code of several crawls together: the worst one."""
    return max(codes, key=WORST.index, default=0)


async def run_several(
    planned: Sequence[PlannedCrawl], *, at_once: int, fresh: bool, watch: Watch
) -> list[EndedCrawl]:
    """Run all crawls. One that cannot run does not prevent the others. A signal stops all."""
    crawls = _AllCrawls(planned, at_once, watch, fresh=fresh)
    with stopped_by_signals(crawls):
        await crawls.run()
    return crawls.ended


class _AllCrawls:
    """All crawls as one set of workers, which is run and stopped together."""

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
        """A watcher that shows this crawl only in its turn: crawls share one line of progress, each
        for some seconds."""

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
