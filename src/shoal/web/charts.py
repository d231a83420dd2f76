"""Draws charts as SVG path data. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10

WIDTH, HEIGHT = 600.0, 120.0
SPARK_WIDTH, SPARK_HEIGHT = 80.0, 20.0
BAR, BAR_GAP = 6.0, 2.0


def ceiling(values: Sequence[float]) -> float:
    """The top of a chart's scale: the next 1, 2 or 5 times a power of ten, at least the maximum."""
    most = max(values, default=0.0)
    if most <= 0:
        return 1.0
    step = 10.0 ** floor(log10(most))
    return next(step * factor for factor in (1, 2, 5, 10) if step * factor >= most)


def line(
    points: Sequence[tuple[float, float]],
    since: float,
    until: float,
    top: float,
    size: tuple[float, float] = (WIDTH, HEIGHT),
    gap_s: float = float("inf"),
) -> str:
    """The path through points of time and value, with a gap where points are over `gap_s` apart."""
    width, height = size
    parts: list[str] = []
    before: float | None = None
    for at, value in points:
        if not since <= at <= until:
            continue
        x = (at - since) / (until - since) * width
        y = height - min(max(value / top, 0.0), 1.0) * height
        is_new = before is None or at - before > gap_s
        parts.append(f"{'M' if is_new else 'L'}{x:.1f} {y:.1f}")
        before = at
    return "".join(parts)


def area(path: str, size: tuple[float, float] = (WIDTH, HEIGHT)) -> str:
    """The area below a line's path, with each of its pieces closed."""
    pieces = [piece for piece in path.split("M") if "L" in piece]
    closed = []
    for piece in pieces:
        points = piece.split("L")
        first, last = points[0].split()[0], points[-1].split()[0]
        closed.append(f"M{first} {size[1]:.0f}L{piece}L{last} {size[1]:.0f}Z")
    return "".join(closed)


def spark(points: Sequence[tuple[float, float]], since: float, until: float, gap_s: float) -> str:
    """A sparkline through points of time and value. Empty if there are too few points."""
    top = ceiling([value for _, value in points])
    path = line(points, since, until, top, (SPARK_WIDTH, SPARK_HEIGHT), gap_s)
    return path if "L" in path else ""


def bars(values: Sequence[float]) -> str:
    """One bar per value, side by side, as one path."""
    top = max(values, default=0.0) or 1.0
    parts = []
    for number, value in enumerate(values):
        height = max(value / top * SPARK_HEIGHT, 1.0)
        x = number * (BAR + BAR_GAP)
        parts.append(f"M{x:.0f} {SPARK_HEIGHT:.0f}v-{height:.1f}h{BAR:.0f}v{height:.1f}Z")
    return "".join(parts)
