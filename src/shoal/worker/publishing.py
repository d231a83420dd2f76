"""Publishing what a crawl gives: the port to a broker, and the waiting for one that is away."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol

from shoal.frontier.values import Stats, Verdict
from shoal.runtime.patience import patiently
from shoal.worker.report import Report

STOPPING_S = 3.0
"""How long a broker may take once the worker was told to stop."""

Send = Callable[[], Awaitable[None]]

log = logging.getLogger("shoal")


class Publishing(Protocol):
    """Publishes items, dead tasks and the end of a crawl.

    Its sends return when the broker has everything, may be repeated, and raise errors as stores
    do.
    """

    def prepare(self, reports: Sequence[Report]) -> Send:
        """Return a function that sends everything these reports have to publish. What can never be
        sent is noted among the rejected items of its report."""

    async def finished(self, stats: Stats) -> None:
        """Publish the end of the crawl, unless that was published before."""

    async def close(self) -> None:
        """Close the connection."""


def is_told(report: Report) -> bool:
    """Whether a report holds anything that is published."""
    return bool(report.items) or report.outcome.verdict is Verdict.DEAD


class Outlet:
    """Sends through a port, and waits for a broker that is away, as for a store; but not once the
    worker was told to stop."""

    def __init__(self, publishing: Publishing) -> None:
        self.prepare = publishing.prepare
        self.close = publishing.close
        self._publishing = publishing
        self._told: object = None  # The last end of the crawl that was published.
        self._ends_at: float | None = None
        self._limit: asyncio.Timeout | None = None
        self._gave_up = False

    async def sent(self, send: Send) -> bool:
        """Send, however long it takes. Returns False if the worker was told to stop before the
        broker had everything."""
        if self._gave_up:
            return False
        self._limit = asyncio.timeout_at(self._ends_at)
        try:
            async with self._limit:
                await patiently("broker", send)
        except TimeoutError:
            if not self._limit.expired():
                raise
            self._gave_up = True
            log.warning("stopped while the broker was away: what it was not told will come again")
            return False
        finally:
            self._limit = None
        return True

    async def finished(self, stats: Stats) -> None:
        """Publish this end of the crawl, once."""
        end = stats.state, stats.finished_at
        if end != self._told and await self.sent(partial(self._publishing.finished, stats)):
            self._told = end

    def drain(self) -> None:
        """Wait for the broker for only a short time from now on."""
        if self._ends_at is None:
            self._ends_at = asyncio.get_running_loop().time() + STOPPING_S
        if self._limit is not None and not self._limit.expired():
            self._limit.reschedule(self._ends_at)
