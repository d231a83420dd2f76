"""What is to be said of a crawl: which limit it is at, how many workers are enough, until when it
takes, what would help, and what it costs. Pure.

Others call `advice`; `words` makes sentences of what it returns.
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


class Readiness(StrEnum):
    """Whether there is anything to advise, and if not, why."""

    READY = "ready"
    NEW = "new"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    FINISHED = "finished"
    IDLE = "idle"
    """Nothing is left, and nobody has said that there will be no more seeds."""
    SEEDING = "seeding"
    """Seeds were left, and nobody has read them yet."""
    NO_WORKERS = "no_workers"
    BROKEN = "broken"
    """All that is left is at hosts that do not answer."""
    TOO_EARLY = "too_early"


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """A plan, and what comes of it."""

    what: str
    forecast: Forecast
    enough: int
    """So many workers would do as well, or nearly."""
    floor: Floor | None = None
    cost: Cost | None = None


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """What a deadline takes."""

    at: float
    left_s: float
    workers: int | None
    """The fewest that meet it. None: no number does."""
    forecast: Forecast
    """With so many; else with as many as are enough."""


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """Times over numbers of workers."""

    what: str
    points: list[Forecast]


class Advised(msgspec.Struct, frozen=True, kw_only=True):
    """What is advised where there is something to advise."""

    fleet: FleetSeen
    now: Outcome
    enough: Outcome
    most: Outcome
    """With so many workers that more change nothing."""
    machines: Machines
    effects: list[Effect]
    due: Due | None = None
    what_ifs: list[Outcome] = []


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """All that is to be said of a crawl."""

    situation: Situation
    readiness: Readiness
    advised: Advised | None = None
    """None if it is not `ready`."""


def advice(
    situation: Situation,
    deadline: float | None = None,
    what_ifs: Sequence[WhatIf] = (),
    prices: Prices = NO_PRICES,
) -> Advice:
    """What is to be said of a crawl. `deadline` is a moment."""
    readiness = readiness_of(situation)
    fleet = situation.fleet
    if readiness is not Readiness.READY or fleet is None:
        return Advice(situation=situation, readiness=readiness)
    adviser = _Adviser(situation, fleet, prices)
    return Advice(
        situation=situation, readiness=readiness, advised=adviser.advised(deadline, what_ifs)
    )


def readiness_of(situation: Situation) -> Readiness:
    """Whether there is anything to advise."""
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
    """Times over numbers of workers: as the crawl is, and for what is asked for."""
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
    """Asks the model."""

    def __init__(self, situation: Situation, fleet: FleetSeen, prices: Prices) -> None:
        self._situation, self._fleet, self._prices = situation, fleet, prices
        self._model = Model(situation, fleet)
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
