"""Draws bar charts as SVG, in the colours of `shoal.core.charts`."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from shoal.core.charts import COLOURS, TEXT, svg, written

OURS, THEIRS, YARDSTICK = COLOURS[0], COLOURS[1], COLOURS[4]

_BAR_X, _BAR_WIDTH, _ROW, _TOP = 280, 410, 28, 46


class Bar(msgspec.Struct, frozen=True):
    """One row of a bar chart."""

    label: str
    value: float
    colour: str
    low: float
    high: float
    """The smallest and the largest round, drawn as a whisker."""


def bars(title: str, rows: Sequence[Bar], note: str) -> str:
    """Horizontal bars, as long as their values."""
    scale = _BAR_WIDTH / max(row.high for row in rows)
    parts = [written(8, 20, title, size=16, bold=True)]
    for number, row in enumerate(rows):
        parts += _bar(row, _TOP + number * _ROW, scale)
    height = _TOP + len(rows) * _ROW + 26
    parts.append(written(8, height - 8, note, size=12))
    return svg(parts, height)


def _bar(row: Bar, y: float, scale: float) -> list[str]:
    middle, end = y + 9, _BAR_X + row.value * scale
    whisker = [
        f'<path d="M{_BAR_X + row.low * scale:.1f} {middle:.1f}H{_BAR_X + row.high * scale:.1f}" '
        f'stroke="{TEXT}" stroke-width="2"/>'
    ]
    return [
        written(_BAR_X - 10, y + 14, row.label, anchor="end"),
        f'<rect x="{_BAR_X}" y="{y}" width="{max(end - _BAR_X, 1):.1f}" height="18" rx="2" '
        f'fill="{row.colour}"/>',
        *(whisker if row.high > row.low else []),
        written(_BAR_X + max(row.value, row.high) * scale + 8, y + 14, f"{row.value:,.0f}"),
    ]
