"""Combines all advice on a crawl: its limit, how many workers are enough, when it will be done,
what would help, and what it costs. Pure.

`advice` is the entry point; words.py turns its result into sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from itertools import islice

import msgspec

from shoal.frontier.values import CrawlState
from shoal.insight.advise.floor import Floor, floor_of
from shoal.insight.advise.levers import Effect, effects
from shoal.insight.advise.model import MAX_WORKERS, Forecast, Model, Plan, plan_now
from shoal.insight.advise.prices import (
    NO_PRICES,
    Cost,
    Machines,
    Prices,
    carried,
    cost_of,
    machines_for,
)
from shoal.insight.advise.seen import FleetSeen
from shoal.insight.advise.situation import Situation
from shoal.insight.advise.what_if import WhatIf

MOST_POINTS, MOST_CURVES = 24, 4
START_S = 2.0
"""About the time that a worker takes to start: to be done sooner by less is worth none."""


class Readiness(StrEnum):
    """Whether the model can give advice, and if not, why."""

    READY = "ready"
    NEW = "new"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    FINISHED = "finished"
    IDLE = "idle"
    """No task is left, but the crawl is not sealed: more seeds may come."""
    SEEDING = "seeding"
    """No task is left, but seeds wait in the inbox."""
    NO_WORKERS = "no_workers"
    BROKEN = "broken"
    """All remaining tasks belong to hosts that keep failing."""
    TOO_EARLY = "too_early"


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a plan."""

    what: str
    """The name of the plan."""
    forecast: Forecast
    enough: int
    """The fewest workers with which the plan takes hardly longer than with any number."""
    floor: Floor | None = None
    cost: Cost | None = None


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """What it takes to meet a deadline."""

    at: float
    left_s: float
    """The time until the deadline."""
    workers: int | None
    """The fewest workers that meet the deadline. None if no number does."""
    forecast: Forecast
    """The forecast with that many workers; if there is none, with as many as are enough."""


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """Forecasts of one plan with different numbers of workers."""

    what: str
    """The name of the plan."""
    points: list[Forecast]


class Advised(msgspec.Struct, frozen=True, kw_only=True):
    """The advice on a crawl that is ready for it."""

    fleet: FleetSeen
    now: Outcome
    enough: Outcome
    """With the fewest workers that are enough."""
    most: Outcome
    """With so many workers that more would change nothing."""
    machines: Machines
    effects: list[Effect]
    due: Due | None = None
    what_ifs: list[Outcome] = []


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """The situation of a crawl, and the advice on it."""

    situation: Situation
    readiness: Readiness
    advised: Advised | None = None
    """None unless `readiness` is READY."""


def advice(
    situation: Situation,
    deadline: float | None = None,
    what_ifs: Sequence[WhatIf] = (),
    prices: Prices = NO_PRICES,
) -> Advice:
    """Advise on a crawl. `deadline` is a time in seconds since 1970."""
    readiness = readiness_of(situation)
    fleet = situation.fleet
    if readiness is not Readiness.READY or fleet is None:
        return Advice(situation=situation, readiness=readiness)
    adviser = _Adviser(situation, fleet, prices)
    return Advice(
        situation=situation, readiness=readiness, advised=adviser.advised(deadline, what_ifs)
    )


def readiness_of(situation: Situation) -> Readiness:
    """Whether advice on a crawl is possible."""
    if situation.state is not CrawlState.RUNNING:
        return Readiness(situation.state.value)
    if not situation.remaining:
        return Readiness.SEEDING if situation.has_inbox else Readiness.IDLE
    if not situation.workers:
        return Readiness.NO_WORKERS
    if situation.broken and not _has_work(situation):
        return Readiness.BROKEN
    return Readiness.TOO_EARLY if situation.too_early else Readiness.READY


def curves(
    situation: Situation, what_ifs: Sequence[WhatIf] = (), prices: Prices = NO_PRICES
) -> list[Curve]:
    """Forecasts over numbers of workers: for the crawl as it is, and for each what-if."""
    if situation.fleet is None:
        return []
    return _Adviser(situation, situation.fleet, prices).curves(what_ifs)


def _has_work(situation: Situation) -> bool:
    pages = (
        *(host.pages for host in situation.hosts),
        *(pool.pages for pool in situation.pools),
        *(chain.left for chain in situation.chains),
    )
    return situation.others > 0 or any(pages)


class _Adviser:
    """Makes plans for one crawl, and has the model forecast them."""

    def __init__(self, situation: Situation, fleet: FleetSeen, prices: Prices) -> None:
        self._situation, self._fleet, self._prices = situation, fleet, prices
        self._model = Model(situation, fleet, START_S)
        self._plan = msgspec.structs.replace(
            plan_now(situation, fleet), machine_bytes_per_s=carried(prices)
        )

    def advised(self, deadline: float | None, what_ifs: Sequence[WhatIf]) -> Advised:
        now = self._model.forecast(self._plan)
        enough, most = self._model.best(self._plan), self._model.most(self._plan)
        return Advised(
            fleet=self._fleet,
            now=self._outcome("as it is", now, enough),
            enough=self._outcome("enough", enough, enough),
            most=self._outcome("most", most, enough),
            machines=machines_for(enough, self._fleet, self._prices),
            effects=effects(self._model, now, enough, most.limit),
            due=None if deadline is None else self._due(deadline, enough),
            what_ifs=[self._asked(what_if) for what_if in what_ifs],
        )

    def curves(self, what_ifs: Sequence[WhatIf]) -> list[Curve]:
        plans = {"as it is": self._plan}
        for what_if in what_ifs:
            if what_if.without_workers:
                plans[what_if.without_workers] = what_if.of(self._plan)
        plans = dict(islice(plans.items(), MOST_CURVES))
        enough = [self._model.best(plan).plan.workers for plan in plans.values()]
        asked = [what_if.of(self._plan).workers for what_if in what_ifs]
        most = min(max(*(2 * at for at in enough), *asked, self._plan.workers, 4), MAX_WORKERS)
        step = -(-most // MOST_POINTS)
        numbers = [1, *range(1 + step, most + step, step)] if step > 1 else range(1, most + 1)
        return [
            Curve(what=what, points=[self._with(plan, number) for number in numbers])
            for what, plan in plans.items()
        ]

    def _with(self, plan: Plan, workers: int) -> Forecast:
        return self._model.forecast(msgspec.structs.replace(plan, workers=workers))

    def _asked(self, what_if: WhatIf) -> Outcome:
        plan = what_if.of(self._plan)
        return self._outcome(what_if.text, self._model.forecast(plan), self._model.best(plan))

    def _outcome(self, what: str, forecast: Forecast, enough: Forecast) -> Outcome:
        return Outcome(
            what=what,
            forecast=forecast,
            enough=enough.plan.workers,
            floor=floor_of(self._model, forecast.plan),
            cost=cost_of(forecast, self._situation, self._fleet, self._prices),
        )

    def _due(self, deadline: float, enough: Forecast) -> Due:
        left_s = deadline - self._situation.at
        workers = self._model.fewest(self._plan, left_s)
        forecast = enough if workers is None else self._with(self._plan, workers)
        return Due(at=deadline, left_s=left_s, workers=workers, forecast=forecast)
