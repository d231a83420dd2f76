"""`python -m benchmarks.autoscale`: simulates autoscaling for a crawl whose hosts come and go.

Pages are a fluid here and the clock is simulated, so an hour takes seconds. Decisions are made by
the code of `shoal autoscale`: the same observations, model and rule. For comparison, the same crawl
runs with a fleet that always has the maximum, and with one that always has just as many workers as
hosts can keep busy. Draws the number of workers, with the reasons.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.autoscale_course import MOST, Course, autoscaled, fixed, just_enough
from benchmarks.report import wide_console
from benchmarks.site import OUT
from shoal.core.charts import Line, Mark, lines


def chart_of(scaled: Course, always: Course) -> str:
    """A chart of the workers over time, the number that hosts could use, and the reasons."""
    minutes = [(moment.at / 60, moment) for moment in scaled.moments]
    return lines(
        "Workers of an autoscaled crawl",
        [
            Line("workers", _bends([(at, float(moment.workers)) for at, moment in minutes])),
            Line(
                f"that hosts could use (of {MOST})",
                _bends([(at, min(moment.of_use, float(MOST))) for at, moment in minutes]),
            ),
        ],
        "minutes",
        "workers",
        f"{scaled.worker_s / 3600:.1f} worker-hours and {scaled.seconds / 60:.0f} min; with"
        f" {MOST} all the time {always.worker_s / 3600:.1f} and {always.seconds / 60:.0f} min",
        marks=list(_marks(scaled)),
    )


def _bends(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points where a line bends: without those whose two neighbours have the same value."""
    inner = zip(points, points[1:], points[2:], strict=False)
    bent = [point for last, point, following in inner if not last[1] == point[1] == following[1]]
    return [*points[:1], *bent, *points[-1:]]


def _marks(course: Course) -> Iterator[Mark]:
    """A mark for each change whose reason differs from that of the change before."""
    known = ""
    for before, after in course.changes:
        reason = f"{after.workers > before.workers} {after.why.partition(':')[0]}"
        if reason != known:
            text = f"{before.workers} → {after.workers}: {after.why}"
            yield Mark(after.at / 60, float(after.workers), text)
        known = reason


def main() -> None:
    """Simulate, print, draw."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.autoscale", description=__doc__)
    parser.add_argument("--charts", type=Path, default=OUT, help="the folder for the chart")
    args = parser.parse_args()
    console, scaled, always = wide_console(), autoscaled(), fixed()
    for before, after in scaled.changes:
        line = f"{after.at:6.0f} s  {before.workers} -> {after.workers} workers: {after.why}"
        console.print(line)
    courses = {"autoscaled": scaled, f"always {MOST}": always, "always just enough": just_enough()}
    for name, course in courses.items():
        console.print(f"{name}: {course.seconds:,.0f} s, {course.worker_s:,.0f} worker-seconds")
    args.charts.mkdir(exist_ok=True)
    (args.charts / "autoscale.svg").write_text(chart_of(scaled, always), "utf-8")


if __name__ == "__main__":
    main()
