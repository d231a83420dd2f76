"""Tunes the memory use of a worker process: the garbage collector and malloc."""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Options of glibc's mallopt()."""

MAX_FREE_BYTES = 16 * 1024 * 1024
"""How much free memory at the end of the heap is kept for the next page."""

LARGE_BYTES = 4 * 1024 * 1024
"""Blocks of at least this size go back to the system as soon as they are free."""


def settle_in() -> None:
    """Tune the memory use. Call it once all modules are loaded.

    Reasons: docs/performance.md, "Where the time goes".
    """
    _collect_less_garbage()
    _keep_free_memory()


def _collect_less_garbage() -> None:
    """Run the garbage collector less often, as pages leave few cycles and a search is costly."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def _keep_free_memory() -> None:
    """Make glibc keep freed memory for the next page.

    Each page is parsed into a tree of some hundred kilobytes, which is then freed. If that is at
    the end of the heap, glibc would return it to the system, and the next page would get it back
    with forty page faults.
    """
    with suppress(OSError, AttributeError):  # Not glibc.
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)
        mallopt(_M_TRIM_THRESHOLD, MAX_FREE_BYTES)
