"""Looks after a process whose event loop stands still.

A handler may never return. Meanwhile nothing is renewed, so the worker has lost its leases anyway.
Ending it lets the fleet start another one; a task that does this to worker after worker ends as
poison. A process that is not ours alone is not ended: it only says where it stands.
"""

from __future__ import annotations

import asyncio
import faulthandler
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

CHECKS = 4
"""Signs of life per limit."""

STALLED_LEASES = 2
"""The limit, in lease times."""


@asynccontextmanager
async def watched(lease_s: float, *, ends: bool = True) -> AsyncIterator[None]:
    """Watch over what is done inside, with the limit that a lease time gives."""
    watchdog = asyncio.create_task(watch_over(lease_s * STALLED_LEASES, ends=ends))
    try:
        yield
    finally:
        watchdog.cancel()
        with suppress(asyncio.CancelledError):
            await watchdog


async def watch_over(limit_s: float, *, ends: bool = True) -> None:
    """Give a sign of life now and then. Without one for `limit_s`, it is said on stderr where the
    process stands, and the process ends at once, if it is to."""
    try:
        while True:
            faulthandler.dump_traceback_later(limit_s, exit=ends)
            await asyncio.sleep(limit_s / CHECKS)
    finally:
        faulthandler.cancel_dump_traceback_later()
