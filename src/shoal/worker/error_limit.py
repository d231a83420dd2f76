"""`stop_after_errors`: a crawl whose handlers raise and raise is paused, for the whole fleet.

Frontiers count such failures for the crawl, so all workers agree on when it is time, and nothing
else is kept: each time that the count passes a multiple of the limit.
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
    """Tells when a crawl has had too many errors since it was first looked at. Pure."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._passed: int | None = None
        self.left = limit
        """How many more there may be, as of the last look."""

    def is_passed(self, stats: Stats) -> bool:
        """Whether the limit was passed since the last look. True once for each time."""
        passed, beyond = divmod(errors_of(stats), self._limit)
        before, self._passed, self.left = self._passed, passed, self._limit - beyond
        return before is not None and passed > before


class Deaths:
    """Tasks that have died in one worker, for who waits for so many of them."""

    def __init__(self) -> None:
        self._count = 0
        self._more = asyncio.Event()

    def note(self, count: int) -> None:
        """So many have died just now."""
        if count:
            self._count += count
            self._more.set()

    async def wait_for(self, count: int, timeout_s: float) -> None:
        """Return when so many more have died, or the time is over."""
        enough = self._count + count
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while self._count < enough:
                    self._more.clear()
                    await self._more.wait()


def errors_of(stats: Stats) -> int:
    """Tasks whose handlers raised, ever."""
    return stats.failures_by_kind.get(FailureKind.HANDLER, 0)


async def pause_after_errors(frontier: Frontier, crawl: str, limit: int, deaths: Deaths) -> None:
    """Look after the errors of a crawl until cancelled: now and then, and at once if those of this
    worker alone may be too many. One that was deleted has none."""
    errors = ErrorLimit(limit)
    while True:
        with suppress(UnknownCrawl):
            stats = await patient(frontier).stats(crawl)
            # One that is paused already was so by another worker, or by somebody.
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
