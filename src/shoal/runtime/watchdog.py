"""Looks after a process whose event loop stands still.

A handler may never return. Meanwhile nothing is renewed, so the worker has lost its leases anyway.
Ending it lets the fleet start another one; a task that does this to worker after worker ends as
poison. A process that is not ours alone is not ended: it only says where it stands.
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
"""Signs of life per limit."""

STALLED_LEASES = 2
"""The limit, in lease times."""

LATER = 2
"""How many limits it takes until a process ends that cannot say what people understand."""


@contextmanager
def watched(lease_s: float, *, ends: bool = True) -> Iterator[None]:
    """Watch over what the event loop does inside. If it stands still for too long, it is said on
    stderr where, and the process ends at once, if it is to."""
    watchdog = _Watchdog(lease_s * STALLED_LEASES, ends=ends)
    watchdog.see_life()
    try:
        yield
    finally:
        watchdog.leave()


class _Watchdog:
    """Two that wait for the next sign of life: a thread that says a line that people understand,
    and faulthandler, which says less and some time later, but also while some C code keeps all
    threads of Python from running. faulthandler may crash what it looks at: it is only for a
    process that is to end anyway."""

    def __init__(self, limit_s: float, *, ends: bool) -> None:
        self._limit_s = limit_s
        self._ends = ends
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._stderr = _descriptor_of_stderr() if ends else None
        self._timer: threading.Timer | None = None

    def see_life(self) -> None:
        """Called by the loop now and then."""
        self._next = self._loop.call_later(self._limit_s / CHECKS, self.see_life)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = threading.Timer(self._limit_s, self._stands_still)
        self._timer.daemon = True
        with suppress(RuntimeError):  # No thread to be had. The next sign of life may have one.
            self._timer.start()
            self._end_after(self._limit_s * LATER)

    def leave(self) -> None:
        """Nothing is watched any more."""
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
            self._end_after(self._limit_s)  # In case that this comes to a stand, too.
            stack = "".join(traceback.format_stack(sys._current_frames().get(self._thread)))
            sys.stderr.write(f"shoal: {what} stood still for {self._limit_s:g} s{then}:\n{stack}")
            sys.stderr.flush()
        if self._ends:
            os._exit(1)


def _descriptor_of_stderr() -> int | None:
    """Where faulthandler can write: not every stderr is a file, and there may be none."""
    for stream in (sys.stderr, sys.__stderr__):
        with suppress(AttributeError, OSError, ValueError):
            return stream.fileno()  # type: ignore[union-attr]
    return None
