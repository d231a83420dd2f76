"""Asks the frontier on behalf of all clients: each question at most once a second.

Clients that ask meanwhile share the last answer, or the one that is under way. Without clients the
frontier is not asked at all. A slow question is asked less often, so that however many crawls there
are, most of the frontier's time is left to workers.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar

from shoal.frontier.port import QueriesAndNotes
from shoal.frontier.values import Stats
from shoal.insight.status import Snapshot, snapshot
from shoal.web.recent_speeds import RecentSpeeds

FRESH_S = 1.0
KEPT_FACTOR = 4
"""An answer that took t seconds to get is kept for `KEPT_FACTOR` * t, at most `MAX_KEPT_S`."""
MAX_KEPT_S = 30.0
ANSWERS_KEPT = 500

T = TypeVar("T")


class _Answer:
    """An answer that has arrived, or is under way."""

    def __init__(
        self, coming: asyncio.Task[Any], fresh_s: float, clock: Callable[[], float]
    ) -> None:
        self.coming = coming
        self._clock = clock
        self._asked_at = clock()
        self._fresh_until = self._asked_at + fresh_s
        coming.add_done_callback(self._arrived)

    @property
    def is_fresh(self) -> bool:
        """Whether the answer may be used: it is under way, or recent enough."""
        return not self.coming.done() or self._clock() < self._fresh_until

    def _arrived(self, task: asyncio.Task[Any]) -> None:
        now = self._clock()
        # Calling exception() also keeps asyncio from logging it, if every client has left.
        if task.cancelled() or task.exception() is not None:
            self._fresh_until = now + FRESH_S
        else:
            rest_s = min(KEPT_FACTOR * (now - self._asked_at), MAX_KEPT_S)
            self._fresh_until = max(self._fresh_until, now + rest_s)


class Sampler:
    """Caches answers of the frontier, which all clients share."""

    def __init__(
        self, frontier: QueriesAndNotes, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._frontier = frontier
        self._clock = clock
        self._answers: OrderedDict[Hashable, _Answer] = OrderedDict()
        self.speeds = RecentSpeeds()

    async def ask(
        self, question: Hashable, look: Callable[[], Awaitable[T]], fresh_s: float = FRESH_S
    ) -> T:
        """The answer to a question. It is at most `fresh_s` old, unless it is slow to get: see
        `KEPT_FACTOR`. Errors are shared, too."""
        known = self._answers.get(question)
        if known is None or not known.is_fresh:
            known = _Answer(asyncio.ensure_future(_called(look)), fresh_s, self._clock)
            self._answers[question] = known
            self._answers.move_to_end(question)
            while len(self._answers) > ANSWERS_KEPT:
                self._answers.popitem(last=False)
        # The client that asked first may disconnect, while others still wait for the answer.
        answer: T = await asyncio.shield(known.coming)
        return answer

    def forget(self) -> None:
        """Drop all answers, because something was changed and the client wants to see that."""
        self._answers.clear()

    async def crawls(self) -> list[Stats]:
        """Every crawl, the newest first."""
        return await self.ask("crawls", self._crawls)

    async def crawl(self, name: str) -> Snapshot:
        """One crawl. Raises UnknownCrawl."""
        return await self.ask(("crawl", name), lambda: self._crawl(name))

    async def _crawls(self) -> list[Stats]:
        crawls = await self._frontier.crawls()
        now = time.time()
        for stats in crawls:
            if stats.state.live:
                self.speeds.note(stats, now)
        return crawls

    async def _crawl(self, name: str) -> Snapshot:
        now = time.time()
        seen = await snapshot(self._frontier, name, now)
        self.speeds.note(seen.stats, now)
        return seen


async def _called(look: Callable[[], Awaitable[T]]) -> T:
    return await look()
