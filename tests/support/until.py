"""Waiting in tests: every wait has an end, and says what it waited for."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

LIMIT_S = 60.0
"""Far beyond what a slow machine needs: who waits so long waits for what does not come."""

_LOOK_EVERY_S = 0.01


async def until(what: str, look: Callable[[], T | Awaitable[T]], limit_s: float = LIMIT_S) -> T:
    """Wait until `look` gives something true, and return that. `what` is what it waits for."""
    deadline = time.monotonic() + limit_s
    while True:
        seen = look()
        found: T = await seen if inspect.isawaitable(seen) else seen
        if found:
            return found
        _check(deadline, what, limit_s, found)
        # A few turns of the loop are often enough, and cost nothing.
        await asyncio.sleep(0 if time.monotonic() < deadline - limit_s + 0.1 else _LOOK_EVERY_S)


def until_now(what: str, look: Callable[[], T], limit_s: float = LIMIT_S) -> T:
    """The same where there is no event loop."""
    deadline = time.monotonic() + limit_s
    while not (found := look()):
        _check(deadline, what, limit_s, found)
        time.sleep(_LOOK_EVERY_S)
    return found


def _check(deadline: float, what: str, limit_s: float, found: object) -> None:
    if time.monotonic() > deadline:
        raise AssertionError(f"waited {limit_s:g} s for {what}; last seen: {found!r}")
