"""Predicts whether a run will be done within its window."""

from __future__ import annotations

from datetime import UTC, datetime

from shoal.core.policy import eta_s
from shoal.frontier.values import CrawlState, Stats


def remaining_s(stats: Stats) -> float | None:
    """How long the rest of a crawl will take at the recent rate. None if that is unknown, for
    example while the crawl is paused."""
    if stats.state.over:
        return 0.0
    if stats.state is CrawlState.PAUSED:
        return None
    limit = stats.rules.max_pages
    left = stats.remaining if limit is None else min(stats.remaining, max(limit - stats.tried, 0))
    return eta_s(left, stats.pages_per_s)


def lateness(deadline: float | None, stats: Stats, now: float) -> str | None:
    """A message about a run that is late or will be. None if it is in time."""
    if deadline is None or stats.state.over:
        return None
    left_s = remaining_s(stats) if stats.tried else None
    end = None if left_s is None else now + left_s
    if now > deadline:
        rest = f", at this pace until {_clock(end)}" if end is not None else ""
        return f"late: its window ended {_clock(deadline)}, {stats.remaining:,} still to do{rest}"
    if end is not None and end > deadline:
        return f"late: its window ends {_clock(deadline)}, at this pace it is done {_clock(end)}"
    return None


def _clock(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%d %b %H:%M UTC")
