"""Formats durations, sizes and counts for people, on the command line and in the dashboard."""

from __future__ import annotations

VALUE_CHARACTERS = 40


def shortened(value: str) -> str:
    """The start of a value, with an ellipsis if it is longer than `VALUE_CHARACTERS`."""
    return value if len(value) <= VALUE_CHARACTERS else f"{value[: VALUE_CHARACTERS - 1]}…"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun: 1 task, 2 tasks."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def duration(seconds: float) -> str:
    """Seconds for people: 4.2s, 3m 20s, 5h 12m, 2d 3h."""
    if seconds < 60:
        return f"{seconds:.1f}s" if seconds < 10 else f"{seconds:.0f}s"
    minutes, rest_s = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}m {rest_s:02}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes:02}m" if hours < 48 else f"{hours // 24}d {hours % 24}h"


def speed(per_s: float) -> str:
    """A speed, without its unit: 0.0512, 7.74, 1,140."""
    return f"{per_s:,.0f}" if per_s >= 999.5 else f"{per_s:.3g}"


def size(count: float) -> str:
    """Bytes for people: 999 B, 1.2 MB."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
