"""What spiders count of their own: `self.count("sold_out")`.

A try at a task has a dict of its own, which everything that runs for it finds in its context:
handlers of several pages take turns, and what they start goes on beside them. Outside of a try
nothing is counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextvars import ContextVar

MAX_NAMES = 64
"""Names of a crawl. What is counted by others is added up."""
MAX_COUNT = 10**9
"""Of one name, so much in one try."""
OTHERS = "(others)"
"""The name for what is counted by more names than there may be. Nobody can count by it."""

_is_name = re.compile("[A-Za-z0-9_.-]{1,64}").fullmatch
_of_try: ContextVar[dict[str, int] | None] = ContextVar("shoal_own_counts", default=None)


def begin() -> dict[str, int]:
    """A try begins. What it counts from now on is in this dict."""
    counts: dict[str, int] = {}
    _of_try.set(counts)
    return counts


def count(name: str, times: int = 1) -> None:
    """Count something for the try that this is called for. Raises ValueError."""
    if not isinstance(name, str) or not _is_name(name):
        raise ValueError(f"not a name to count by: {name!r:.80} (letters, digits, and - _ . only)")
    if type(times) is not int or not 0 <= times <= MAX_COUNT:
        raise ValueError(f"{name}: count a whole number, up to a billion, not {times!r:.80}")
    counts = _of_try.get()
    if counts is None or not times:
        return
    if name not in counts and len(counts) >= MAX_NAMES:
        raise ValueError(f"{name}: a task counts by at most {MAX_NAMES} names")
    counts[name] = min(counts.get(name, 0) + times, MAX_COUNT)


def forget() -> None:
    """What the try has counted so far does not count."""
    if counts := _of_try.get():
        counts.clear()


def added(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Counts of several parts, added up, by name."""
    total: dict[str, int] = {}
    for part in parts:
        for name, times in sorted(part.items()):
            has_room = len(total.keys() - {OTHERS}) < MAX_NAMES
            at = name if name in total or has_room else OTHERS
            total[at] = total.get(at, 0) + times
    return dict(sorted(total.items()))
