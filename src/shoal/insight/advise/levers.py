"""What would bring a crawl to its end earlier, and what would not. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

import msgspec

from shoal.insight.advise.model import NEAR, Forecast, Limit, Model, Plan

TWICE = 2
"""So much more of everything is tried."""


class Lever(StrEnum):
    """What people can change."""

    WORKERS = "workers"
    CONCURRENCY = "concurrency"
    """Requests at once, by each worker."""
    RATE = "rate"
    ROOM = "concurrency_per_host"
    EXITS = "exits"
    """Or accounts."""
    STORES = "stores"


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """What a lever does."""

    lever: Lever
    forecast: Forecast
    before_s: float
    """What it takes without."""

    @property
    def helps(self) -> bool:
        """Whether it makes a difference."""
        return self.forecast.seconds * NEAR < self.before_s


def effects(model: Model, now: Forecast, enough: Forecast, last: Limit) -> list[Effect]:
    """What each lever does. Workers and what they have in hand are compared with the crawl as it
    is, all others with as many workers as are enough. `last` is what limits these."""
    more = enough if enough.plan.workers > now.plan.workers else now
    wider = msgspec.structs.replace(now.plan, slots=now.plan.slots * TWICE)
    return [
        Effect(lever=Lever.WORKERS, forecast=more, before_s=now.seconds),
        Effect(lever=Lever.CONCURRENCY, forecast=model.forecast(wider), before_s=now.seconds),
        *(
            Effect(lever=lever, forecast=model.best(plan), before_s=enough.seconds)
            for lever, plan in _others(model, enough.plan, last)
        ),
    ]


def _others(model: Model, plan: Plan, last: Limit) -> Iterator[tuple[Lever, Plan]]:
    if plan.rate.count:
        faster = msgspec.structs.replace(plan.rate, count=plan.rate.count * TWICE)
        yield Lever.RATE, msgspec.structs.replace(plan, rate=faster)
    yield Lever.ROOM, msgspec.structs.replace(plan, room=plan.room * TWICE)
    if model.situation.pools:
        yield Lever.EXITS, msgspec.structs.replace(plan, exits=plan.exits * TWICE)
    if last is Limit.STORES:
        yield Lever.STORES, msgspec.structs.replace(plan, stores=plan.stores * TWICE)
