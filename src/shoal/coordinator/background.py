"""Work on runs that may take long: it goes on in the background, one task for each run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Background:
    """The tasks under way, by the run's crawl. Used as a context: they end with it."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Background:
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def begin(self, crawl: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Begin the work on a run, unless it is under way."""
        if crawl not in self._tasks:
            self._tasks[crawl] = asyncio.create_task(work())

    def reap(self) -> None:
        """Let go of tasks that have ended. Raises what one of them raised."""
        for crawl, task in list(self._tasks.items()):
            if task.done():
                del self._tasks[crawl]
                task.result()
