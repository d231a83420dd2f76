"""Renders advice as JSON for scripts, and what-ifs as rows of a table. Pure."""

from __future__ import annotations

from math import isfinite
from typing import Any

import msgspec

from shoal.insight.advise.advice import Advice, Advised, Outcome
from shoal.insight.advise.model import Forecast, Limit
from shoal.insight.advise.prices import Prices
from shoal.insight.advise.words import SLOTS, limit_words, rows
from shoal.insight.figures import duration, speed

WHAT_IF_COLUMNS = ("what if", "workers", "pages/s", "time", "enough workers", "limit")


def advice_json(advice: Advice, prices: Prices) -> dict[str, Any]:
    """All advice on a crawl."""
    situation, advised = advice.situation, advice.advised
    fields: dict[str, Any] = {
        "crawl": situation.crawl,
        "at": situation.at,
        "standing": advice.readiness,
        "remaining": situation.remaining,
        "growth": situation.growth,
        "is_growing": situation.is_growing,
        "broken_hosts": situation.broken,
        "words": dict(rows(advice, prices)),
    }
    return fields | (_advised(advised, prices) if advised is not None else {})


def _advised(advised: Advised, prices: Prices) -> dict[str, Any]:
    due = advised.due
    return {
        "limit": advised.now.forecast.limit,
        "last_limit": advised.most.forecast.limit,
        "now": _outcome(advised.now, prices),
        "enough": _outcome(advised.enough, prices),
        "deadline": None
        if due is None
        else {"at": due.at, "workers": due.workers, **_forecast(due.forecast)},
        "effects": [
            {"lever": effect.lever, "helps": effect.helps, "before_s": _finite(effect.before_s)}
            | _forecast(effect.forecast)
            for effect in advised.effects
        ],
        "machines": msgspec.to_builtins(advised.machines),
        "stolen": advised.fleet.stolen_use,
        "what_if": [_outcome(outcome, prices) for outcome in advised.what_ifs],
    }


def _outcome(outcome: Outcome, prices: Prices) -> dict[str, Any]:
    cost = outcome.cost
    return {
        "what": outcome.what,
        **_forecast(outcome.forecast),
        "enough_workers": outcome.enough,
        "floor": msgspec.to_builtins(outcome.floor),
        "cost": None
        if cost is None
        else {
            **msgspec.to_builtins(cost),
            "total": cost.total,
            "currency": prices.currency,
        },
    }


def _forecast(forecast: Forecast) -> dict[str, Any]:
    return {
        "workers": forecast.plan.workers,
        "seconds": _finite(forecast.seconds),
        "pages_per_s": forecast.per_s,
        "limit": forecast.limit,
    }


def _finite(seconds: float) -> float | None:
    return seconds if isfinite(seconds) else None


def what_if_rows(advice: Advice, prices: Prices) -> list[tuple[str, ...]]:
    """A row for the crawl as it is and one for each what-if. The last column is the cost, if there
    are prices."""
    if advice.advised is None:
        return []
    fleet = advice.advised.fleet
    return [
        (
            outcome.what,
            f"{outcome.forecast.plan.workers:,}",
            speed(outcome.forecast.per_s),
            duration(outcome.forecast.seconds),
            f"{outcome.enough:,}",
            SLOTS if outcome.forecast.limit is Limit.SLOTS else limit_words(outcome, fleet),
            *([f"{outcome.cost.total:,.2f} {prices.currency}"] if outcome.cost else []),
        )
        for outcome in (advice.advised.now, *advice.advised.what_ifs)
    ]
