"""How far, how fast, until when."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.frontier.port import Stats
from shoal.policy import eta_s


def elapsed_s(stats: Stats, now: float) -> float:
    """How long the crawl has been, or was, under way."""
    if stats.started_at is None:
        return 0.0
    return (stats.finished_at or now) - stats.started_at


def remaining_s(stats: Stats) -> float | None:
    """How long the rest will take at the recent rate. None while that cannot be said."""
    return 0.0 if stats.state.over else eta_s(stats.remaining, stats.pages_per_s)


def as_json(stats: Stats, now: float) -> dict[str, Any]:
    """A crawl's statistics for scripts."""
    fields: dict[str, Any] = msgspec.to_builtins(stats)
    fields |= {
        "remaining": stats.remaining,
        "pages_per_s": round(stats.pages_per_s, 2),
        "elapsed_s": round(elapsed_s(stats, now), 3),
        "eta_s": remaining_s(stats),
    }
    return fields
