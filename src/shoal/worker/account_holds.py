"""Holds an account for manual use: for as long as the process that holds it lives, and hardly
longer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from shoal.core.identities import IdentityReport
from shoal.frontier.patient import patient
from shoal.frontier.port import Frontier, Held

HOLD_S = 60.0
"""How long one hold keeps an account from others before it must be renewed. If the holder is
killed, the account is free again after this time."""
HOLD_ON_EVERY_S = 15.0


class Hold:
    """A hold on an account. Work that was begun under it ends with it."""

    def __init__(self, frontier: Frontier, held: Held) -> None:
        self._frontier = patient(frontier)
        self._held = held

    @asynccontextmanager
    async def lasting(self) -> AsyncIterator[None]:
        """Keep the hold while the block runs. Raises TimeoutError inside the block if the hold
        cannot be kept: the frontier was away for too long, or this process had no time to renew
        it."""
        is_over = asyncio.Event()
        async with asyncio.timeout(HOLD_S) as limit:
            holding_on = asyncio.create_task(self._hold_on(limit, is_over))
            try:
                yield
            finally:
                is_over.set()
                await holding_on  # Not cancelled: a renewal may have reached the frontier already.

    async def let_go(self, found: IdentityReport) -> bool:
        """End the hold and tell the fleet what was found. Returns False if the hold had ended
        before."""
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
