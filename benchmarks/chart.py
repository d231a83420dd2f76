"""Charts as SVG: bars, and lines over a logarithmic axis.

There is no background, and all colours are of middling brightness: they can be read on white and on
black.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

import msgspec

WIDTH = 760
TEXT = "#7d8590"
RULE = "#7d859055"
OURS, THEIRS, YARDSTICK = "#2f8af5", "#cf7a1c", "#8a939d"
SERIES = (OURS, THEIRS, "#3fa35c", "#b065d6")

_BAR_X, _BAR_WIDTH, _ROW, _TOP = 280, 410, 28, 46
_PLOT = (64.0, 46.0, 620.0, 240.0)
"""Left, top, width and height of the plot of lines."""


class Bar(msgspec.Struct, frozen=True):
    """One row of a bar chart."""

    label: str
    value: float
    colour: str
    low: float
    high: float
    """The smallest and the largest round, drawn as a whisker."""


class Line(msgspec.Struct, frozen=True):
    """One line of a chart, as points."""

    label: str
    points: Sequence[tuple[float, float]]


class Mark(msgspec.Struct, frozen=True):
    """A place in a chart of which something is said below."""

    x: float
    y: float
    text: str


def bars(title: str, rows: Sequence[Bar], note: str) -> str:
    """Horizontal bars, as long as their values."""
    scale = _BAR_WIDTH / max(row.high for row in rows)
    parts = [_text(8, 20, title, size=16, bold=True)]
    for number, row in enumerate(rows):
        parts += _bar(row, _TOP + number * _ROW, scale)
    height = _TOP + len(rows) * _ROW + 26
    parts.append(_text(8, height - 8, note, size=12))
    return _svg(parts, height)


def _bar(row: Bar, y: float, scale: float) -> list[str]:
    middle, end = y + 9, _BAR_X + row.value * scale
    whisker = [
        f'<path d="M{_BAR_X + row.low * scale:.1f} {middle:.1f}H{_BAR_X + row.high * scale:.1f}" '
        f'stroke="{TEXT}" stroke-width="2"/>'
    ]
    return [
        _text(_BAR_X - 10, y + 14, row.label, anchor="end"),
        f'<rect x="{_BAR_X}" y="{y}" width="{max(end - _BAR_X, 1):.1f}" height="18" rx="2" '
        f'fill="{row.colour}"/>',
        *(whisker if row.high > row.low else []),
        _text(_BAR_X + max(row.value, row.high) * scale + 8, y + 14, f"{row.value:,.0f}"),
    ]


def lines(title: str, series: Sequence[Line], x_name: str) -> str:
    """Lines over a logarithmic x axis; y begins at 0."""
    left, top, width, height = _PLOT
    points = [point for line in series for point in line.points]
    first, last = (math.log10(at(x for x, _ in points)) for at in (min, max))
    ceiling = _round_up(max(y for _, y in points))

    def place(x: float, y: float) -> tuple[float, float]:
        share = (math.log10(x) - first) / ((last - first) or 1)
        return left + share * width, top + height * (1 - y / ceiling)

    parts = [_text(8, 20, title, size=16, bold=True)]
    for step in range(5):
        value = ceiling * step / 4
        y = place(10**first, value)[1]
        parts.append(f'<path d="M{left} {y:.1f}H{left + width}" stroke="{RULE}"/>')
        parts.append(_text(left - 8, y + 4, f"{value:,.5g}", anchor="end"))
    parts += [
        _text(place(x, 0)[0], top + height + 18, _short(x), anchor="middle")
        for x in sorted({x for x, _ in points})
    ]
    for number, line in enumerate(series):
        at = [place(*point) for point in line.points]
        parts += _line(at, SERIES[number % len(SERIES)])
        parts += _legend(line.label, number)
    parts.append(_text(left + width, top + height + 36, x_name, anchor="end", size=12))
    return _svg(parts, top + height + 44 + 20 * len(series))


def steps(title: str, series: Sequence[Line], x_name: str, marks: Sequence[Mark]) -> str:
    """Lines over an even x axis from 0, with numbered marks; what they say is written below."""
    left, top, width, height = _PLOT
    points = [point for line in series for point in line.points]
    last, ceiling = (_round_up(max(point[axis] for point in points)) for axis in (0, 1))

    def place(x: float, y: float) -> tuple[float, float]:
        return left + x / last * width, top + height * (1 - y / ceiling)

    parts = [_text(8, 20, title, size=14, bold=True)]
    for step in range(5):
        y, x = place(0, ceiling * step / 4)[1], place(last * step / 4, 0)[0]
        parts.append(f'<path d="M{left} {y:.1f}H{left + width}" stroke="{RULE}"/>')
        parts.append(_text(left - 8, y + 4, f"{ceiling * step / 4:,.5g}", anchor="end"))
        parts.append(_text(x, top + height + 18, f"{last * step / 4:,.5g}", anchor="middle"))
    for number, line in enumerate(series):
        path = "L".join(
            f"{x:.1f} {y:.1f}" for x, y in (place(*point) for point in _bends(line.points))
        )
        colour = SERIES[number % len(SERIES)]
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += _legend(line.label, number)
    parts.append(_text(left + width, top + height + 36, x_name, anchor="end", size=12))
    below = top + height + 60 + 20 * len(series)
    for number, mark in enumerate(marks, 1):
        x, y = place(mark.x, mark.y)
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{TEXT}"/>')
        parts.append(_text(x + 5, y - 6, f"{number}", size=12, bold=True))
        parts.append(_text(left, below + 18 * number, f"{number}. {mark.text}", size=12))
    return _svg(parts, below + 18 * len(marks) + 12)


def _bends(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points without those between two of the same height."""
    inner = zip(points, points[1:], points[2:], strict=False)
    bent = [point for last, point, following in inner if not last[1] == point[1] == following[1]]
    return [*points[:1], *bent, *points[-1:]]


def _line(at: Sequence[tuple[float, float]], colour: str) -> list[str]:
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in at)
    dots = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>' for x, y in at]
    return [f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2.5"/>', *dots]


def _legend(label: str, number: int) -> list[str]:
    left, top, _, height = _PLOT
    y = top + height + 40 + 20 * number
    colour = SERIES[number % len(SERIES)]
    return [
        f'<rect x="{left}" y="{y:.1f}" width="14" height="4" fill="{colour}"/>',
        _text(left + 22, y + 6, label),
    ]


def _round_up(value: float) -> float:
    """The next number above that is easy to read: 1, 2, 4, 5, 8 or 10 of its magnitude."""
    magnitude = 10.0 ** math.floor(math.log10(value))
    return next(step * magnitude for step in (1, 2, 4, 5, 8, 10) if step * magnitude >= value)


def _short(number: float) -> str:
    """10 thousand, 5 million."""
    for size, name in ((1e6, "million"), (1e3, "thousand")):
        if number >= size:
            return f"{number / size:g} {name}"
    return f"{number:g}"


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", size: int = 13, bold: bool = False
) -> str:
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{weight}>'
        f"{escape(text)}</text>"
    )


def _svg(parts: Iterable[str], height: float) -> str:
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" '
        f'width="{WIDTH}" height="{height:.0f}" fill="{TEXT}" '
        f'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif">\n'
        f"{body}\n</svg>\n"
    )
