"""Work on runs that may take long: it goes on beside the chores, one piece for each run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Beside:
    """What is going on, by the run's crawl."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def begin(self, crawl: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Begin with a run, unless that was done."""
        if crawl not in self._tasks:
            self._tasks[crawl] = asyncio.create_task(work())

    def reap(self) -> None:
        """Let go of what has ended. Raises what it raised."""
        for crawl, task in list(self._tasks.items()):
            if task.done():
                del self._tasks[crawl]
                task.result()

    async def end(self) -> None:
        """Stop everything."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
