"""Requests that no page of ours led to: a spider's first ones, and those made on the side."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import islice

from shoal.frontier.port import Entry, Frontier
from shoal.waiting import patiently

BATCH = 500


class Intake:
    """Takes entries at once and brings them to the frontier in batches, in the order they came."""

    def __init__(self, frontier: Frontier, crawl: str, on_added: Callable[[], None]) -> None:
        self._frontier = frontier
        self._crawl = crawl
        self._on_added = on_added
        self._entries: deque[Entry] = deque()
        self._adding = asyncio.Lock()
        self._wake = asyncio.Event()

    @property
    def is_empty(self) -> bool:
        """Whether the frontier has everything."""
        return not self._entries and not self._adding.locked()

    def put(self, entry: Entry) -> None:
        """Take an entry. Never waits."""
        self._entries.append(entry)
        self._wake.set()

    async def run(self) -> None:
        """Bring entries to the frontier until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            await self.flush()

    async def flush(self) -> None:
        """Return when the frontier has all that was put before."""
        async with self._adding:
            while self._entries:
                batch = list(islice(self._entries, BATCH))
                await patiently("frontier", partial(self._frontier.add, self._crawl, batch))
                for _ in batch:
                    self._entries.popleft()
                self._on_added()
