"""`stop_after_errors`: pauses a crawl, for the whole fleet, when too many of its handlers have
raised.

The frontier counts these failures for the crawl, so all workers agree on when the limit is reached.
Nothing else is stored: the crawl is paused each time the count passes a multiple of the limit.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from shoal.core.failures import FailureKind
from shoal.errors import ConfigError, UnknownCrawl
from shoal.frontier.causes import causes_of_death
from shoal.frontier.events import STEERED, note_event
from shoal.frontier.patient import patient
from shoal.frontier.port import Frontier
from shoal.frontier.values import Control, CrawlState, Stats

LOOK_EVERY_S = 0.5

log = logging.getLogger("shoal")


class ErrorLimit:
    """Tells when a crawl has had too many errors since the first look at it. Pure."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._passed: int | None = None
        self.left = limit
        """How many more there may be, as of the last look."""

    def is_passed(self, stats: Stats) -> bool:
        """Whether the limit was passed since the last look. True once for each multiple of the
        limit."""
        passed, beyond = divmod(errors_of(stats), self._limit)
        before, self._passed, self.left = self._passed, passed, self._limit - beyond
        return before is not None and passed > before


class Deaths:
    """Counts the tasks that die in one worker, for those who wait for a number of them."""

    def __init__(self) -> None:
        self._count = 0
        self._more = asyncio.Event()

    def note(self, count: int) -> None:
        """Add tasks that have just died."""
        if count:
            self._count += count
            self._more.set()

    async def wait_for(self, count: int, timeout_s: float) -> None:
        """Return when this many more tasks have died, or after the timeout."""
        enough = self._count + count
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while self._count < enough:
                    self._more.clear()
                    await self._more.wait()


def errors_of(stats: Stats) -> int:
    """Tasks whose handlers have raised, in all."""
    return stats.failures_by_kind.get(FailureKind.HANDLER, 0)


async def pause_after_errors(frontier: Frontier, crawl: str, limit: int, deaths: Deaths) -> None:
    """Watch the errors of a crawl until cancelled. A crawl that was deleted has none.

    It looks every few seconds, and at once when this worker alone may have reached the limit.
    """
    errors = ErrorLimit(limit)
    while True:
        with suppress(UnknownCrawl):
            stats = await patient(frontier).stats(crawl)
            # A crawl that is paused already was paused by another worker or by a person.
            if errors.is_passed(stats) and stats.state is CrawlState.RUNNING:
                await _pause(frontier, stats)
        await deaths.wait_for(errors.left, LOOK_EVERY_S)


async def _pause(frontier: Frontier, stats: Stats) -> None:
    causes = await causes_of_death(patient(frontier), stats)
    why = f"{errors_of(stats):,} handlers raised (stop_after_errors)"
    if causes:
        why = f"{why}: {causes[0].told}"
    try:
        await patient(frontier).control(stats.crawl, Control.PAUSE)
    except ConfigError:  # It has come to its end meanwhile.
        return
    await note_event(frontier.notes, stats.crawl, STEERED[Control.PAUSE], why, by="worker")
    log.error("crawl '%s' is paused: %s", stats.crawl, why)
