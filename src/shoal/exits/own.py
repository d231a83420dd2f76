"""The exits of one worker, read when its work begins and again while it runs."""

from __future__ import annotations

import asyncio
import logging
import time

from shoal.config import Settings
from shoal.core.exits import Lent
from shoal.exits.routes import Exits
from shoal.fetch.port import Route
from shoal.frontier.port import HasExits

READ_AGAIN_S = 10.0
"""The minimum time between two readings of the lists because of an unknown exit."""
WARNED = 1_000
"""The maximum number of unknown exits to warn of."""

log = logging.getLogger("shoal")


def own_exits(settings: Settings, frontier: HasExits) -> OwnExits | None:
    """The exits of a worker with these settings. None if they name no pools."""
    return OwnExits(settings, frontier) if settings.proxy_pools else None


class OwnExits:
    """The exits of a worker. Empty until `open` is called."""

    def __init__(self, settings: Settings, frontier: HasExits) -> None:
        self._settings = settings
        self._frontier = frontier
        self._exits: Exits | None = None
        self._missing = asyncio.Event()
        self._unknown: set[str] = set()

    @property
    def pools(self) -> tuple[str, ...]:
        """The pools whose tasks the worker may be given."""
        return self._exits.pools if self._exits is not None else ()

    def route(self, lent: Lent, task_pool: str | None) -> Route | None:
        """The route through an exit that was lent. None if the exit is not known here.

        Another worker may have read a newer list, so the lists are read again soon in that case.
        """
        route = self._exits.route(lent, task_pool) if self._exits is not None else None
        if route is None:
            self._missing.set()
            name = lent.exit or f"pool {lent.pool}, directly,"
            if name not in self._unknown and len(self._unknown) < WARNED:
                self._unknown.add(name)
                log.warning("%s is no way out that is known here: the lists are read again", name)
        return route

    async def open(self) -> None:
        """Read the lists, and tell the frontier about their exits."""
        if self._exits is None:
            self._exits = await Exits.open(self._settings)
        await self._exits.put(self._frontier)

    async def keep_fresh(self) -> None:
        """Read the lists again when they are due, and when an exit is missing. Runs until
        cancelled."""
        if self._exits is None:
            return
        async with asyncio.TaskGroup() as group:
            group.create_task(self._exits.keep_fresh(self._frontier))
            while True:
                await self._missing.wait()
                began = time.monotonic()
                await self._exits.read_again(self._frontier)
                await asyncio.sleep(max(began + READ_AGAIN_S - time.monotonic(), 0.0))
                self._missing.clear()

    async def close(self) -> None:
        """Close the connections."""
        if self._exits is not None:
            await self._exits.close()
