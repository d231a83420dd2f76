"""Counters of the user's own: `self.count("sold_out")` in a spider.

Each try at a task has a dict of its own in a context variable. So the handlers of several pages,
which take turns, and what they start beside themselves, count for the right try. Outside of a try,
nothing is counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextvars import ContextVar

MAX_NAMES = 64
"""Names that a crawl may count by. Counts by further names are added up under `OTHERS`."""
MAX_COUNT = 10**9
"""The most that one try may count by one name."""
OTHERS = "(others)"
"""The name for everything counted beyond `MAX_NAMES` names. Its spelling is not allowed for names,
so no spider can count by it."""

_is_name = re.compile("[A-Za-z0-9_.-]{1,64}").fullmatch
_of_try: ContextVar[dict[str, int] | None] = ContextVar("shoal_own_counts", default=None)


def begin() -> dict[str, int]:
    """Begin a try. From now on its counts go into the dict returned."""
    counts: dict[str, int] = {}
    _of_try.set(counts)
    return counts


def count(name: str, times: int = 1) -> None:
    """Count something for the try that is running. Raises ValueError for a bad name or number."""
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
    """Discard what the try has counted so far."""
    if counts := _of_try.get():
        counts.clear()


def added(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sum of several sets of counts, by name."""
    total: dict[str, int] = {}
    for part in parts:
        for name, times in sorted(part.items()):
            has_room = len(total.keys() - {OTHERS}) < MAX_NAMES
            at = name if name in total or has_room else OTHERS
            total[at] = total.get(at, 0) + times
    return dict(sorted(total.items()))
