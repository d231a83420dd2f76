"""The intake of requests that no page led to: a spider's first ones, and those made on the side."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from itertools import islice

from shoal.frontier.patient import patient
from shoal.frontier.port import WorkIntake
from shoal.frontier.values import Entry

BATCH = 100
FULL = 10 * BATCH
"""The number of entries at which start() waits until the frontier has some of them."""


class Intake:
    """Takes entries at once, and adds them to the frontier in batches, in the order they came."""

    def __init__(self, frontier: WorkIntake, crawl: str, on_added: Callable[[], None]) -> None:
        self._frontier = patient(frontier)
        self._crawl = crawl
        self._on_added = on_added
        self._entries: deque[Entry] = deque()
        self._adding = asyncio.Lock()
        self._wake = asyncio.Event()
        self._roomy = asyncio.Event()
        self._roomy.set()
        self._taken = 0
        self._taken_on_the_side = 0
        self._brought = 0

    @property
    def is_empty(self) -> bool:
        """Whether the frontier has all entries."""
        return not self._entries and not self._adding.locked()

    def put(self, entry: Entry, *, of_start: bool = False) -> None:
        """Take an entry for the frontier. Never waits."""
        self._entries.append(entry)
        self._taken += 1
        if not of_start:
            self._taken_on_the_side = self._taken
        self._wake.set()
        if len(self._entries) >= FULL:
            self._roomy.clear()

    async def room(self) -> None:
        """Wait until there is room for more entries."""
        await self._roomy.wait()

    async def run(self) -> None:
        """Add entries to the frontier until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            await self.flush()

    async def flush(self) -> None:
        """Return when the frontier has everything that was put before."""
        await self._bring(self._taken)  # More may come all the time, which is not waited for.

    async def flush_side(self) -> None:
        """Return when the frontier has all entries except those of start(): a page that is being
        read may have made them, and must not be finished earlier."""
        await self._bring(self._taken_on_the_side)

    async def _bring(self, wanted: int) -> None:
        if self._brought >= wanted:
            return
        async with self._adding:
            while self._brought < wanted:
                batch = list(islice(self._entries, BATCH))
                await self._frontier.add(self._crawl, batch)
                for _ in batch:
                    self._entries.popleft()
                self._brought += len(batch)
                self._roomy.set()
                self._on_added()
