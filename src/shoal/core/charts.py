"""Draws line charts as SVG, written by hand.

They have no background, and all colours are of medium brightness, so they can be read on white and
on black.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from math import floor, log10
from typing import Protocol

import msgspec

WIDTH = 760
TEXT, RULE = "#7d8590", "#7d859055"
COLOURS = ("#2f8af5", "#cf7a1c", "#3fa35c", "#b065d6", "#8a939d")

_LEFT, _PLOT_WIDTH, _PLOT_HEIGHT = 70.0, 650.0, 260.0
_TITLE_Y, _NOTE_Y, _BELOW_NOTES = 20.0, 40.0, 20.0
_TICKS = 6
_UNITS = ((86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))


class Line(msgspec.Struct, frozen=True):
    """One line of a chart."""

    label: str
    points: Sequence[tuple[float, float]]
    has_dots: bool = False
    is_dashed: bool = False


class Mark(msgspec.Struct, frozen=True):
    """A numbered point in a chart, explained below it."""

    x: float
    y: float
    text: str


class Axis(Protocol):
    """Maps values to places along an axis, and says which values to label."""

    def at(self, value: float) -> float:
        """The place of a value, from 0 to 1."""

    def ticks(self) -> Iterator[tuple[float, str]]:
        """The values to label, each with its label."""


class FromZero:
    """An axis from 0 to a value, labelled with round numbers."""

    def __init__(self, largest: float, least_step: float = 0.0) -> None:
        self._step = max(_easy(largest / _TICKS), least_step) if largest > 0 else 1.0
        self._end = max(largest, self._step)

    def at(self, value: float) -> float:
        return value / self._end

    def ticks(self) -> Iterator[tuple[float, str]]:
        for number in range(int(self._end / self._step + 1e-9) + 1):
            yield number * self._step, f"{number * self._step:,.5g}"


class Logarithmic:
    """A logarithmic axis on which each of the given values is labelled."""

    def __init__(self, values: Sequence[float]) -> None:
        self._values = sorted(set(values))
        self._first = log10(self._values[0])
        self._length = log10(self._values[-1]) - self._first or 1.0

    def at(self, value: float) -> float:
        return (log10(value) - self._first) / self._length

    def ticks(self) -> Iterator[tuple[float, str]]:
        for value in self._values:
            yield value, _short(value)


def time_unit(longest_s: float) -> tuple[float, str]:
    """A readable unit for times up to this one: its seconds and its name."""
    return next((unit for unit in _UNITS if longest_s >= 2 * unit[0]), _UNITS[-1])


def lines(
    title: str,
    series: Sequence[Line],
    x_name: str,
    y_name: str = "",
    note: str = "",
    wide: Axis | None = None,
    marks: Sequence[Mark] = (),
) -> str:
    """Draw a line chart. Both axes begin at 0, unless `wide` gives another x axis."""
    points = [point for line in series for point in line.points]
    wide = wide or FromZero(max(x for x, _ in points))
    high = FromZero(max(y for _, y in points))
    top = (_NOTE_Y if note else _TITLE_Y) + _BELOW_NOTES + 18
    bottom = top + _PLOT_HEIGHT

    def place(x: float, y: float) -> tuple[float, float]:
        return _LEFT + _PLOT_WIDTH * wide.at(x), bottom - _PLOT_HEIGHT * high.at(y)

    parts = [written(8, _TITLE_Y, title, size=16, bold=True)]
    parts += [written(8, _NOTE_Y, note)] if note else []
    parts += [written(_LEFT, top - 8, y_name, size=12)] if y_name else []
    parts += _grid(wide, high, bottom)
    parts.append(written(_LEFT + _PLOT_WIDTH, bottom + 36, x_name, anchor="end", size=12))
    for number, line in enumerate(series):
        colour = COLOURS[number % len(COLOURS)]
        parts += _drawn(line, [place(*point) for point in line.points], colour)
        parts += _legend(line.label, bottom + 48 + 20 * number, colour)
    below = bottom + 60 + 20 * len(series)
    for number, mark in enumerate(marks, 1):
        parts += _marked(number, place(mark.x, mark.y))
        parts.append(written(_LEFT, below + 18 * number - 10, f"{number}. {mark.text}", size=12))
    return svg(parts, below + 18 * len(marks))


def _grid(wide: Axis, high: Axis, bottom: float) -> Iterator[str]:
    for value, shown in high.ticks():
        y = bottom - _PLOT_HEIGHT * high.at(value)
        yield f'<path d="M{_LEFT} {y:.1f}H{_LEFT + _PLOT_WIDTH}" stroke="{RULE}"/>'
        yield written(_LEFT - 8, y + 4, shown, anchor="end", size=12)
    for value, shown in wide.ticks():
        x = _LEFT + _PLOT_WIDTH * wide.at(value)
        yield f'<path d="M{x:.1f} {bottom}v5" stroke="{TEXT}"/>'
        yield written(x, bottom + 19, shown, anchor="middle", size=12)


def _drawn(line: Line, at: Sequence[tuple[float, float]], colour: str) -> Iterator[str]:
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in at)
    dashes = ' stroke-dasharray="6 5"' if line.is_dashed else ""
    yield f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2.5"{dashes}/>'
    for x, y in at if line.has_dots else ():
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'


def _legend(label: str, y: float, colour: str) -> Iterator[str]:
    yield f'<rect x="{_LEFT}" y="{y:.1f}" width="14" height="4" fill="{colour}"/>'
    yield written(_LEFT + 22, y + 6, label)


def _marked(number: int, at: tuple[float, float]) -> Iterator[str]:
    x, y = at
    yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{TEXT}"/>'
    yield written(x + 5, y - 6, f"{number}", size=12, bold=True)


def _easy(value: float) -> float:
    """The next higher round number: 1, 2, 5 or 10 times a power of ten."""
    magnitude = 10.0 ** floor(log10(value))
    return next(by * magnitude for by in (1, 2, 5, 10) if by * magnitude >= value)


def _short(number: float) -> str:
    """A short form of a number: 10 thousand, 5 million."""
    for size, name in ((1e6, "million"), (1e3, "thousand")):
        if number >= size:
            return f"{number / size:g} {name}"
    return f"{number:g}"


def written(
    x: float, y: float, text: str, *, anchor: str = "start", size: int = 13, bold: bool = False
) -> str:
    """A line of text as SVG."""
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{weight}>'
        f"{escape(text)}</text>"
    )


def svg(parts: Sequence[str], height: float) -> str:
    """An SVG picture of these parts."""
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" '
        f'width="{WIDTH}" height="{height:.0f}" fill="{TEXT}" '
        f'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif">\n'
        f"{body}\n</svg>\n"
    )
