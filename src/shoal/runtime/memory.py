"""How a worker's process uses memory: what is told to the garbage collector and to malloc."""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Options of glibc's mallopt()."""

MAX_FREE_BYTES = 16 * 1024 * 1024
"""Free memory at the end of the heap that is kept for the next page."""

LARGE_BYTES = 4 * 1024 * 1024
"""What is at least as large goes back to the system as soon as it is free."""


def settle_in() -> None:
    """To be called once all modules are loaded. Why: docs/performance.md, "Where the time goes"."""
    _collect_less_garbage()
    _keep_free_memory()


def _collect_less_garbage() -> None:
    """Pages leave few cycles behind, and looking for them costs."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def _keep_free_memory() -> None:
    """Each page is parsed into a tree of some hundred kilobytes, which is then freed. Where that
    happens to be the end of the heap, glibc would give it back to the system, and the next page
    would have to fetch it again, by forty page faults."""
    with suppress(OSError, AttributeError):  # Not glibc.
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)
        mallopt(_M_TRIM_THRESHOLD, MAX_FREE_BYTES)
