"""A watchdog that ends a process whose event loop is blocked.

A handler may never return. While it blocks the loop, no lease is renewed, so the worker has lost
its leases anyway. Ending it lets the fleet start another one; a task that blocks one worker after
the other ends as poison. A process that belongs to another program is not ended: it only logs where
it is blocked.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress

CHECKS = 4
"""How many signs of life the loop gives within the limit."""

STALLED_LEASES = 2
"""The time limit, in lease times."""

LATER = 2
"""How many limits faulthandler waits before it ends the process, after the thread had its chance.
"""


@contextmanager
def watched(lease_s: float, *, ends: bool = True) -> Iterator[None]:
    """Watch the event loop while the context lasts.

    If the loop is blocked for too long, write to stderr where, and with `ends` end the process.
    """
    watchdog = _Watchdog(lease_s * STALLED_LEASES, ends=ends)
    watchdog.see_life()
    try:
        yield
    finally:
        watchdog.leave()


class _Watchdog:
    """Waits for the next sign of life, in two ways.

    A thread writes a readable message. faulthandler acts later and writes less, but also works
    while C code keeps all Python threads from running. As faulthandler may crash the process that
    it inspects, it is only used if the process is to end anyway.
    """

    def __init__(self, limit_s: float, *, ends: bool) -> None:
        self._limit_s = limit_s
        self._ends = ends
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._stderr = _descriptor_of_stderr() if ends else None
        self._timer: threading.Timer | None = None

    def see_life(self) -> None:
        """Note a sign of life. The loop calls this regularly."""
        self._next = self._loop.call_later(self._limit_s / CHECKS, self.see_life)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = threading.Timer(self._limit_s, self._stands_still)
        self._timer.daemon = True
        with suppress(RuntimeError):  # Out of threads. The next sign of life may get one.
            self._timer.start()
            self._end_after(self._limit_s * LATER)

    def leave(self) -> None:
        """Stop watching."""
        self._next.cancel()
        if self._timer is not None:
            self._timer.cancel()
        if self._stderr is not None:
            faulthandler.cancel_dump_traceback_later()

    def _end_after(self, seconds: float) -> None:
        if self._stderr is not None:
            faulthandler.dump_traceback_later(seconds, exit=True, file=self._stderr)

    def _stands_still(self) -> None:
        what = "this process has" if self._ends else "this program has"
        then = ", so it ends" if self._ends else ""
        with suppress(Exception):  # There may be no stderr, or a closed one.
            self._end_after(self._limit_s)  # In case the following blocks as well.
            stack = "".join(traceback.format_stack(sys._current_frames().get(self._thread)))
            sys.stderr.write(f"shoal: {what} stood still for {self._limit_s:g} s{then}:\n{stack}")
            sys.stderr.flush()
        if self._ends:
            os._exit(1)


def _descriptor_of_stderr() -> int | None:
    """A file descriptor for faulthandler to write to. None if stderr is missing or not a file."""
    for stream in (sys.stderr, sys.__stderr__):
        with suppress(AttributeError, OSError, ValueError):
            return stream.fileno()  # type: ignore[union-attr]
    return None
