"""Waiting in tests: every wait has a limit, and a failure says what it waited for."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from itertools import chain, repeat
from typing import Any, TypeVar, overload

T = TypeVar("T")

LIMIT_S = 120.0
"""Far more than a slow machine needs: what has not happened by then will not happen."""

_LOOK_EVERY_S = 0.005
_AT_ONCE = 100
"""Number of looks before the first pause: a few rounds of the event loop are often enough."""


@overload
async def until(
    what: str, look: Callable[[], Awaitable[T | None]], limit_s: float = LIMIT_S
) -> T: ...
@overload
async def until(what: str, look: Callable[[], T | None], limit_s: float = LIMIT_S) -> T: ...
async def until(what: str, look: Callable[[], Any], limit_s: float = LIMIT_S) -> Any:
    """Wait until `look` returns something true, and return that. `what` describes it for errors."""
    deadline = time.monotonic() + limit_s
    pauses_s = chain(repeat(0.0, _AT_ONCE), repeat(_LOOK_EVERY_S))
    while True:
        seen = look()
        found = await in_time(what, seen, limit_s) if inspect.isawaitable(seen) else seen
        if found:
            return found
        _check(deadline, what, limit_s, found)
        await asyncio.sleep(next(pauses_s))


def until_now(what: str, look: Callable[[], T | None], limit_s: float = LIMIT_S) -> T:
    """Wait like `until`, for callers without an event loop."""
    deadline = time.monotonic() + limit_s
    while not (found := look()):
        _check(deadline, what, limit_s, found)
        time.sleep(_LOOK_EVERY_S)
    return found


async def in_time(what: str, coming: Awaitable[T], limit_s: float = LIMIT_S) -> T:
    """Await something, like the end of a task or an event. Fails if it takes too long."""
    limit = asyncio.timeout(limit_s)
    try:
        async with limit:
            return await coming
    except TimeoutError:
        if limit.expired():
            raise AssertionError(f"waited {limit_s:g} s for {what}") from None
        raise


def _check(deadline: float, what: str, limit_s: float, found: object) -> None:
    if time.monotonic() > deadline:
        raise AssertionError(f"waited {limit_s:g} s for {what}; last seen: {found!r}")
