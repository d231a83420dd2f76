"""Ends a process whose event loop stands still.

A page can be made so that parsing it takes hours, and a handler may never return. Meanwhile nothing
is renewed, so the worker has lost its leases anyway. Ending it lets the fleet start another one; a
task that does this to worker after worker ends as poison.
"""

from __future__ import annotations

import asyncio
import faulthandler

CHECKS = 4
"""Signs of life per limit."""


async def watch_over(limit_s: float) -> None:
    """Give a sign of life now and then. Without one for `limit_s`, the process ends at once, and
    its last words on stderr are where it stood."""
    try:
        while True:
            faulthandler.dump_traceback_later(limit_s, exit=True)
            await asyncio.sleep(limit_s / CHECKS)
    finally:
        faulthandler.cancel_dump_traceback_later()
