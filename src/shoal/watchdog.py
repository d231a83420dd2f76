"""Looks after a process whose event loop stands still.

A handler may never return. Meanwhile nothing is renewed, so the worker has lost its leases anyway.
Ending it lets the fleet start another one; a task that does this to worker after worker ends as
poison. A process that is not ours alone is not ended: it only says where it stands.
"""

from __future__ import annotations

import asyncio
import faulthandler
import sys
import threading
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import NoReturn

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
    if not ends:
        await _only_say(limit_s)
    try:
        while True:
            faulthandler.dump_traceback_later(limit_s, exit=True)
            await asyncio.sleep(limit_s / CHECKS)
    finally:
        faulthandler.cancel_dump_traceback_later()


async def _only_say(limit_s: float) -> NoReturn:
    # faulthandler reads frames that move meanwhile. That may crash a process that is to go on.
    while True:
        timer = threading.Timer(limit_s, _say_where, (threading.get_ident(), limit_s))
        timer.daemon = True
        timer.start()
        try:
            await asyncio.sleep(limit_s / CHECKS)
        finally:
            timer.cancel()


def _say_where(thread: int, limit_s: float) -> None:
    stack = traceback.format_stack(sys._current_frames().get(thread))
    sys.stderr.write(f"shoal: stands still for {limit_s:g} s here:\n{''.join(stack)}")
    sys.stderr.flush()
