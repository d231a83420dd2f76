"""The course of simulated crawls as a picture: SVG, written by hand.

There is no background, and all colours are of middling brightness: they can be read on white and on
black.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from math import floor, log10

from shoal.exits.scenes import Figures

_WIDTH = 760
_LEFT, _TOP, _PLOT_WIDTH, _PLOT_HEIGHT = 70.0, 78.0, 650.0, 260.0
_TEXT, _RULE = "#7d8590", "#7d859055"
_COLOURS = ("#2f8af5", "#cf7a1c", "#3fa35c", "#b065d6")
_UNITS = ((86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))
_TICKS = 6


def course(title: str, note: str, played: Sequence[Figures]) -> str:
    """Pages done over time, a line for each strategy."""
    longest_s = max(figures.seconds for figures in played) or 1.0
    unit_s, unit = next((u for u in _UNITS if longest_s >= 2 * u[0]), _UNITS[-1])
    wide = _Axis(longest_s / unit_s, _LEFT, _PLOT_WIDTH)
    high = _Axis(max(f.done for f in played) or 1, _TOP + _PLOT_HEIGHT, -_PLOT_HEIGHT)
    parts = [_text(8, 20, title, size=16, bold=True), _text(8, 40, note), *_grid(wide, high)]
    bottom = _TOP + _PLOT_HEIGHT
    parts.append(_text(_LEFT + _PLOT_WIDTH, bottom + 36, unit, anchor="end", size=12))
    parts.append(_text(_LEFT, _TOP - 8, "pages done", size=12))
    for number, figures in enumerate(played):
        colour = _COLOURS[number % len(_COLOURS)]
        points = [(wide.at(at / unit_s), high.at(done)) for at, done in figures.progress]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        y = bottom + 48 + 20 * number
        parts.append(f'<rect x="{_LEFT}" y="{y:.1f}" width="14" height="4" fill="{colour}"/>')
        parts.append(_text(_LEFT + 22, y + 6, _legend(figures, unit_s, unit)))
    return _svg(parts, bottom + 60 + 20 * len(played))


class _Axis:
    """Where values are, from 0 to a number that is easy to read."""

    def __init__(self, largest: float, start: float, length: float) -> None:
        self.step = _easy(largest / _TICKS)
        self._end = max(largest, self.step)
        self._start, self._length = start, length

    def at(self, value: float) -> float:
        """The place of a value."""
        return self._start + self._length * value / self._end

    def ticks(self) -> Iterator[float]:
        """The values that are written beside it."""
        for number in range(int(self._end / self.step + 1e-9) + 1):
            yield number * self.step


def _easy(value: float) -> float:
    """The next number above that is easy to read: 1, 2, 5 or 10 of its magnitude."""
    magnitude = 10.0 ** floor(log10(value))
    return next(by * magnitude for by in (1, 2, 5, 10) if by * magnitude >= value)


def _grid(wide: _Axis, high: _Axis) -> Iterator[str]:
    bottom = _TOP + _PLOT_HEIGHT
    for value in high.ticks():
        y = high.at(value)
        yield f'<path d="M{_LEFT} {y:.1f}H{_LEFT + _PLOT_WIDTH}" stroke="{_RULE}"/>'
        yield _text(_LEFT - 8, y + 4, f"{value:,.5g}", anchor="end", size=12)
    for value in wide.ticks():
        x = wide.at(value)
        yield f'<path d="M{x:.1f} {bottom}v5" stroke="{_TEXT}"/>'
        yield _text(x, bottom + 19, f"{value:,.5g}", anchor="middle", size=12)


def _legend(figures: Figures, unit_s: float, unit: str) -> str:
    share = figures.blocked / max(figures.requests, 1)
    return (
        f"{figures.strategy}: {figures.done:,} pages in {figures.seconds / unit_s:,.3g} {unit},"
        f" {share:.1%} of requests blocked"
    )


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", size: int = 13, bold: bool = False
) -> str:
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{weight}>'
        f"{escape(text)}</text>"
    )


def _svg(parts: Sequence[str], height: float) -> str:
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:.0f}" '
        f'width="{_WIDTH}" height="{height:.0f}" fill="{_TEXT}" '
        f'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif">\n'
        f"{body}\n</svg>\n"
    )
