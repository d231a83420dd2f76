"""Charts the progress of simulated crawls."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.core.charts import Line, lines, time_unit
from shoal.exits.scenes import Figures


def course(title: str, note: str, played: Sequence[Figures]) -> str:
    """A chart of the pages done over time, with a line for each strategy, as SVG."""
    unit_s, unit = time_unit(max(figures.seconds for figures in played))
    series = [
        Line(
            _legend(figures, unit_s, unit),
            [(at / unit_s, float(done)) for at, done in figures.progress],
        )
        for figures in played
    ]
    return lines(title, series, unit, "pages done", note)


def _legend(figures: Figures, unit_s: float, unit: str) -> str:
    share = figures.blocked / max(figures.requests, 1)
    return (
        f"{figures.strategy}: {figures.done:,} pages in {figures.seconds / unit_s:,.3g} {unit},"
        f" {share:.1%} of requests blocked"
    )
