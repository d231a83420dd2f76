"""Tries out which changes would end a crawl earlier. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

import msgspec

from shoal.insight.advise.model import NEAR, Forecast, Limit, Model, Plan

TWICE = 2
"""Each change is tried by doubling one thing."""


class Lever(StrEnum):
    """Something that people can change."""

    WORKERS = "workers"
    CONCURRENCY = "concurrency"
    """Requests in flight per worker."""
    RATE = "rate"
    ROOM = "concurrency_per_host"
    """Requests in flight per host."""
    EXITS = "exits"
    """Exits or accounts."""
    STORES = "stores"


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of a change."""

    lever: Lever
    forecast: Forecast
    """How the crawl goes with the change."""
    before_s: float
    """How long it takes without the change."""

    @property
    def helps(self) -> bool:
        """Whether the change saves more than about 5 % of the time."""
        return self.forecast.seconds * NEAR < self.before_s


def effects(model: Model, now: Forecast, enough: Forecast, last: Limit) -> list[Effect]:
    """The effects of all changes.

    More workers, and more requests per worker, are compared with the crawl as it is. All other
    changes are compared with the fleet that is enough, and may then use as many workers as they
    need. `last` is the limit that remains with the largest useful fleet.
    """
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
