"""Counts pages from the numbers in a shop's texts: "1-20 of 4,813", "4.813 Produkte", "Page 3 of
400". Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

MAX_DIGITS = 18
"""No shop has larger numbers. Longer ones are cut to this: they are absurd anyway."""

MAX_TEXT = 2_000
"""Longer texts do not contain a number of pages; hostile ones would keep a worker busy."""

_GROUPED = r"\d{{1,3}}([{marks}])\d{{3}}(?:\{group}\d{{3}})*+(?!\d)"
_INDIAN = r"\d{1,2}(?:,\d{2})+,\d{3}(?!\d)"
_MARKS = ".,'’\u00a0\u202f\u2009"
"""Separators of thousands: 4,813, 4.813, 4'813, and spaces that do not break a line."""

_TO = r"[-–—‑−~～]|(?:to|bis|à|a|al|tot|til|till|do|до)\b"


def _number(marks: str, group: int = 1) -> str:
    return f"{_GROUPED.format(marks=marks, group=group)}|{_INDIAN}|\\d++"


_IN_TEXT = re.compile(_number(_MARKS))
_IN_TOTAL = re.compile(_number(_MARKS + " "))
_RANGE = re.compile(
    rf"(?<!\d)(?P<first>{_number(_MARKS + ' ', 2)})\s*"
    rf"(?:{_TO})\s*(?P<last>{_number(_MARKS + ' ', 4)})",
    re.IGNORECASE,
)


def largest_number(text: str) -> int | None:
    """The largest number in a text: "Page 3 of 4,813". Spaces separate numbers: "398 399 400"."""
    return max(_numbers(_IN_TEXT, text), default=None)


def total_of(text: str) -> int | None:
    """The total that a text gives: the largest number in it. "4 813" is one number."""
    return max(_numbers(_IN_TOTAL, text), default=None)


def range_of(text: str) -> tuple[int, int] | None:
    """The first and the last thing on this page, if the text says that: "21–40 of 4,813"."""
    for match in _RANGE.finditer(text[:MAX_TEXT]):
        first, last = whole(match["first"]), whole(match["last"])
        if first <= last:
            return first, last
    return None


def page_size(text: str, pages_before: int) -> int | None:
    """How many things a page has, from the range in its text.

    The last page may have fewer than the others. So on all pages but the first, the number of
    things before it counts.
    """
    shown = range_of(text)
    if shown is None:
        return None
    before = shown[0] - 1
    if pages_before and before > 0:
        return max(round(before / pages_before), 1)
    return shown[1] - shown[0] + 1


def pages_for(total: int, size: int) -> int:
    """How many pages this many things take. An empty catalogue has one page."""
    return max(-(-total // size), 1)


def whole(text: str) -> int:
    """The number in a text, ignoring everything between its digits."""
    digits = "".join(sign for sign in text if sign.isdecimal())
    return int(digits[:MAX_DIGITS])


def _numbers(pattern: re.Pattern[str], text: str) -> Iterable[int]:
    return (whole(match.group()) for match in pattern.finditer(text[:MAX_TEXT]))
