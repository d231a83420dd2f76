"""Asks the frontier for those who look: at most once a second for each question, and not at all
while nobody looks. Who asks meanwhile gets the answer that is there, or the one that is coming.

A question that takes long is asked less often: however many crawls there are, most of the time the
frontier is left to those who work."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar

from shoal.frontier.port import QueriesAndNotes
from shoal.frontier.values import Stats
from shoal.insight.status import Snapshot, snapshot
from shoal.web.course import Courses

FRESH_S = 1.0
REST = 4
"""An answer is kept for so many times what it took to get it."""
LONGEST_REST_S = 30.0
ANSWERS_KEPT = 500

T = TypeVar("T")


class _Answer:
    """An answer that is there, or is coming."""

    def __init__(
        self, coming: asyncio.Task[Any], fresh_s: float, clock: Callable[[], float]
    ) -> None:
        self.coming = coming
        self._clock = clock
        self._asked_at = clock()
        self._fresh_until = self._asked_at + fresh_s
        coming.add_done_callback(self._came)

    @property
    def is_fresh(self) -> bool:
        """Whether nobody has to ask again yet."""
        return not self.coming.done() or self._clock() < self._fresh_until

    def _came(self, task: asyncio.Task[Any]) -> None:
        now = self._clock()
        if task.cancelled() or task.exception() is not None:  # Nobody may be left to hear of it.
            self._fresh_until = now + FRESH_S
        else:
            rest_s = min(REST * (now - self._asked_at), LONGEST_REST_S)
            self._fresh_until = max(self._fresh_until, now + rest_s)


class Sampler:
    """Answers that all who look share."""

    def __init__(
        self, frontier: QueriesAndNotes, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._frontier = frontier
        self._clock = clock
        self._answers: OrderedDict[Hashable, _Answer] = OrderedDict()
        self.courses = Courses()

    async def ask(
        self, question: Hashable, look: Callable[[], Awaitable[T]], fresh_s: float = FRESH_S
    ) -> T:
        """The answer to a question, as old as `fresh_s` at most if it is quick to get. What it
        raises is shared, too."""
        known = self._answers.get(question)
        if known is None or not known.is_fresh:
            known = _Answer(asyncio.ensure_future(_called(look)), fresh_s, self._clock)
            self._answers[question] = known
            self._answers.move_to_end(question)
            while len(self._answers) > ANSWERS_KEPT:
                self._answers.popitem(last=False)
        # Who asked first may go away; the others still want to know.
        answer: T = await asyncio.shield(known.coming)
        return answer

    def forget(self) -> None:
        """Somebody has changed something, and wants to see that it is so."""
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
                self.courses.note(stats, now)
        return crawls

    async def _crawl(self, name: str) -> Snapshot:
        now = time.time()
        seen = await snapshot(self._frontier, name, now)
        self.courses.note(seen.stats, now)
        return seen


async def _called(look: Callable[[], Awaitable[T]]) -> T:
    return await look()
