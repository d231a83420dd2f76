"""Two ways to wait: for an event with a limit, and for a store that is away."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from shoal.errors import StorageBusy

T = TypeVar("T")

RETRY_FIRST_S = 0.1
RETRY_LIMIT_S = 5.0

log = logging.getLogger("shoal")


async def wait_for_event(event: asyncio.Event, timeout_s: float | None) -> None:
    """Return when the event is set or the time is over, whichever is first."""
    try:
        async with asyncio.timeout(timeout_s):
            await event.wait()
    except TimeoutError:
        return


async def patiently(what: str, call: Callable[[], Awaitable[T]]) -> T:
    """Call until the store answers; say once that it is away, and once that it is back."""
    wait_s = RETRY_FIRST_S
    while True:
        try:
            answer = await call()
        except StorageBusy as error:
            if wait_s == RETRY_FIRST_S:
                log.warning("waiting for the %s: %s", what, error)
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 2, RETRY_LIMIT_S)
        else:
            if wait_s > RETRY_FIRST_S:
                log.warning("the %s is back", what)
            return answer
