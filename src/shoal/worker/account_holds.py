"""Holding an account by hand: for as long as whoever holds it lives, and hardly longer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from shoal.core.identities import IdentityReport
from shoal.frontier.patient import patient
from shoal.frontier.port import Frontier, Held

HOLD_S = 60.0
"""So long an account is kept from others at a time. Who is killed frees it by that."""
HOLD_ON_EVERY_S = 15.0


class Hold:
    """An account that is held. What was begun with it ends with the hold."""

    def __init__(self, frontier: Frontier, held: Held) -> None:
        self._frontier = patient(frontier)
        self._held = held

    @asynccontextmanager
    async def lasting(self) -> AsyncIterator[None]:
        """Hold on to it meanwhile. Raises TimeoutError, in the middle, if that is not possible: the
        frontier was away for too long, or this process had no time to say that it lives."""
        is_over = asyncio.Event()
        async with asyncio.timeout(HOLD_S) as limit:
            holding_on = asyncio.create_task(self._hold_on(limit, is_over))
            try:
                yield
            finally:
                is_over.set()
                await holding_on  # Not cancelled: it may have told the frontier by now.

    async def let_go(self, found: IdentityReport) -> bool:
        """End it, and tell the fleet what was found. False: it had ended before."""
        return await self._frontier.let_go(self._held, found)

    async def _hold_on(self, limit: asyncio.Timeout, is_over: asyncio.Event) -> None:
        now = asyncio.get_running_loop().time
        while not await _has_come(is_over, HOLD_ON_EVERY_S):
            asked_at = now()
            held = await self._frontier.hold_on(self._held, HOLD_S)
            self._held = held or self._held
            if limit.expired():
                return
            limit.reschedule(asked_at + HOLD_S if held else asked_at)


async def _has_come(event: asyncio.Event, within_s: float) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            await event.wait()
    return event.is_set()
