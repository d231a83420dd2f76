"""Draws how long a crawl takes over the number of workers. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.core.charts import FromZero, Line, lines, time_unit
from shoal.insight.advise.advice import Advised, Curve
from shoal.insight.advise.model import Forecast
from shoal.insight.figures import counted, duration


def plot(title: str, note: str, advised: Advised, curves: Sequence[Curve]) -> str:
    """An SVG chart of the curves, with marks for the workers now, for enough workers, and for the
    deadline."""
    every = [point for curve in curves for point in curve.points]
    unit_s, unit = time_unit(max(point.seconds for point in every))
    most = max(point.plan.workers for point in every)

    def place(forecast: Forecast) -> tuple[float, float]:
        return float(forecast.plan.workers), forecast.seconds / unit_s

    def mark(name: str, forecast: Forecast) -> Line:
        workers = counted(forecast.plan.workers, "worker")
        label = f"{name}: {workers}, {duration(forecast.seconds)}"
        return Line(label, [place(forecast)], has_dots=True)

    series = [Line(curve.what, [place(point) for point in curve.points]) for curve in curves]
    series.append(mark("enough", advised.enough.forecast))
    if advised.now.forecast.plan.workers <= most:
        series.append(mark("now", advised.now.forecast))
    if (due := advised.due) is not None:
        left = due.left_s / unit_s
        series.append(Line("deadline", [(0.0, left), (float(most), left)], is_dashed=True))
    wide = FromZero(float(most), least_step=1.0)
    return lines(title, series, "workers", unit, note, wide)
