"""Work on runs that may take long, done in the background: one asyncio task for each run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Background:
    """The running tasks by crawl. A context manager that cancels them when it ends."""

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
        """Begin the work on a run, unless it has already begun."""
        if crawl not in self._tasks:
            self._tasks[crawl] = asyncio.create_task(work())

    def reap(self) -> None:
        """Remove tasks that have ended. Raises the error of one that failed."""
        for crawl, task in list(self._tasks.items()):
            if task.done():
                del self._tasks[crawl]
                task.result()
