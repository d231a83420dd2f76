"""Draws a crawl's charts: speed, failures and queue of the last 15 minutes, hour or day."""

from __future__ import annotations

from bisect import bisect
from typing import Literal

import msgspec

from shoal.insight.history import MINUTE_S, SPANS_S, history
from shoal.web import charts
from shoal.web.context import Context
from shoal.web.recent_speeds import Speed

GAP_S = 180.0
"""Points that are further apart than this are not joined by a line."""
MINUTES_FRESH_S = 20.0
"""How often the leader's history is read. It grows by one point a minute."""
POINTS = 300
"""The most points of a chart, about. Longer histories are averaged."""
CHARTS = ("pages_per_s", "failures_per_s", "queue")


class Span(msgspec.Struct):
    """How far back charts go."""

    span: Literal["15m", "1h", "24h"] = "15m"


async def charts_of(
    context: Context, crawl: str, span: str, now: float
) -> tuple[dict[str, str], dict[str, str]]:
    """The charts of a crawl: their paths, and their labels with the top and the current value."""
    since = now - SPANS_S[span]
    speeds = await _speeds(context, crawl, span, now)
    step = max(-(-len(speeds) // POINTS), 1)
    paths: dict[str, str] = {}
    labels: dict[str, str] = {}
    for name in CHARTS:
        points = _thinned(speeds, name, step)
        top = charts.ceiling([value for _, value in points])
        path = charts.line(points, since, now, top, gap_s=GAP_S * step)
        paths |= {name: path, f"{name}.area": charts.area(path)}
        labels[f"{name}.top"] = f"{top:,.0f}" if top >= 10 else f"{top:g}"
        is_now = bool(speeds) and now - speeds[-1].at < GAP_S
        labels[f"{name}.now"] = _figure(getattr(speeds[-1], name)) if is_now else "–"
    return paths, labels


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or value >= 1000 else f"{value:,.1f}"


async def trend_of(context: Context, crawl: str, now: float) -> str:
    """The speed of the last quarter of an hour, as the path of a sparkline."""
    points = _thinned(await _speeds(context, crawl, "15m", now), "pages_per_s", 1)
    return charts.spark(points, now - SPANS_S["15m"], now, gap_s=GAP_S)


async def _speeds(context: Context, crawl: str, span: str, now: float) -> list[Speed]:
    """The history that the leader keeps by the minute, and what this process saw since."""

    async def kept() -> list[Speed]:
        points = await history(context.frontier.notes, crawl, span, now)
        return [Speed(one.at, one.pages_per_s, one.failures_per_s, one.queue) for one in points]

    minutes = await context.sampler.ask(("minutes", crawl, span), kept, MINUTES_FRESH_S)
    seen = context.sampler.speeds.of(crawl, now - SPANS_S[span])
    if span != "15m":  # These charts are too coarse to show more than a point a minute.
        return [*minutes, *(one for one in seen if not minutes or one.at > minutes[-1].at)]
    seen_at = [one.at for one in seen]
    return sorted([*(one for one in minutes if not _is_near(one.at, seen_at)), *seen])


def _is_near(at: float, ordered: list[float]) -> bool:
    """Whether one of the times is less than a minute away from `at`. This process notes speeds only
    while somebody looks, so there may be gaps between them."""
    after = bisect(ordered, at)
    return any(abs(at - near) < MINUTE_S for near in ordered[max(after - 1, 0) : after + 1])


def _thinned(speeds: list[Speed], name: str, step: int) -> list[tuple[float, float]]:
    """Reduce the points by averaging each group of `step` neighbours."""
    groups = [speeds[first : first + step] for first in range(0, len(speeds), step)]
    return [
        (group[-1].at, sum(getattr(speed, name) for speed in group) / len(group))
        for group in groups
    ]
