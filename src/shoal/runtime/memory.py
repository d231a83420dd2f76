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

LARGE_PAGE_BYTES = 256 * 1024
COLLECT_AFTER_BYTES = 64 * 1024 * 1024


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


class Leftovers:
    """Frees large pages that handlers have left behind in reference cycles.

    An error that is kept in a variable, or a function in a handler that calls itself, is such a
    cycle: the page, its text and its tree stay until the garbage collector finds it. That counts
    objects, not bytes, and large pages of few objects would fill the memory before it runs.
    """

    def __init__(self) -> None:
        self._bytes = 0

    def note(self, size: int) -> None:
        """Note that a page of this size was read."""
        if size < LARGE_PAGE_BYTES:
            return
        self._bytes += size
        if self._bytes >= COLLECT_AFTER_BYTES:
            self._bytes = 0
            gc.collect()
