"""The rule by which the number of workers follows the demand: up at once, down slowly. Pure.

The demand (demand.py) changes from one look to the next, and workers take a while to start and to
stop. So a fleet at most doubles within `STEP_S`. It loses one worker at a time, once fewer have
been enough for `DOWN_AFTER_S`. `shoal autoscale`, Kubernetes and Prometheus all get their number of
workers by this rule.
"""

from __future__ import annotations

from enum import StrEnum
from math import ceil, floor

import msgspec
from msgspec.structs import replace

from shoal.errors import ConfigError
from shoal.insight.advise.demand import Demand
from shoal.insight.advise.model import MAX_WORKERS
from shoal.insight.figures import counted

STEP_S = 15.0
"""A fleet at most doubles in this time."""
DOWN_AFTER_S = 120.0
"""How long fewer workers must have been enough before one is released."""
DOWN_EVERY_S = 5.0
"""The least time between two releases. By then the worker released before has usually ended."""
ZERO_AFTER_S = 300.0
"""How long there must have been nothing to do before the last worker is released."""
STORM_S = 60.0
"""How long no workers are added after one has died: too many of them may be why it died."""


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """The limits that people set."""

    min: int = 0
    max: int = MAX_WORKERS
    worker_per_h: float = 0.0
    """The price of a worker per hour. 0: not known."""
    max_cost_per_h: float | None = None
    down_after_s: float = DOWN_AFTER_S
    zero_after_s: float = ZERO_AFTER_S

    def __post_init__(self) -> None:
        if not 0 <= self.min <= self.max <= MAX_WORKERS or self.max == 0:
            raise ConfigError(
                f"--min {self.min} --max {self.max}: --min may be 0 or more, --max 1 to"
                f" {MAX_WORKERS:,}, and not less than --min"
            )
        if self.max_cost_per_h is not None and self.most < max(self.min, 1):
            raise ConfigError(
                f"{counted(max(self.min, 1), 'worker')} at {self.worker_per_h:g} an hour"
                f" would cost more than {self.max_cost_per_h:g} an hour"
            )

    @property
    def most(self) -> int:
        """The most workers that both the maximum and the maximum cost allow."""
        if self.max_cost_per_h is None or not self.worker_per_h:
            return self.max
        # The tolerance makes 0.3 / 0.1 three workers: as floating point it is a little less.
        return min(self.max, floor(self.max_cost_per_h / self.worker_per_h + 1e-9))

    @property
    def limit(self) -> str:
        """In words, which of the two limits `most` is."""
        return "the maximum" if self.most == self.max else "the maximum cost"


class Hindrance(StrEnum):
    """Why there are not more workers."""

    STORES = "stores"
    """More workers would only wait for a store."""
    MAXIMUM = "maximum"
    """The bounds allow no more."""
    DEATHS = "deaths"
    """Workers have died lately."""


class Staff(msgspec.Struct, frozen=True, kw_only=True):
    """The workers that a crawl has now."""

    alive: int
    """Those whose number this rule decides."""
    others: int = 0
    """Those that another process started and controls."""
    died_at: float | None = None
    """When one of this process's workers last died."""


class Staffing(msgspec.Struct, frozen=True, kw_only=True):
    """A decision on the number of workers, with the times that the next decision needs."""

    workers: int
    """How many workers there should be."""
    looked_at: float
    why: str = ""
    hindrance: Hindrance | None = None
    raised_at: float | None = None
    lowered_at: float | None = None
    less_since: float | None = None
    """Since when fewer workers would be enough."""
    idle_since: float | None = None
    """Since when there has been nothing to do."""


def scaled(
    before: Staffing | None,
    demand: Demand,
    staff: Staff,
    bounds: Bounds,
    now: float,
    *,
    spread: float = 0.0,
) -> Staffing:
    """Decide how many workers there should be from now on.

    `before` is the last decision, `now` is by a monotonic clock. `spread`, from 0 to 1, makes
    releases wait up to twice as long: it differs between processes that scale the same crawl, so
    that they do not all release workers at the same moment.
    """
    known = _still_valid(before, staff, now)
    target = _target(known, demand, staff, bounds)
    since = replace(
        known,
        looked_at=now,
        idle_since=_since(known.idle_since, now) if demand.is_idle else None,
        less_since=_since(known.less_since, now) if target < known.workers else None,
    )
    hindrance = _hindrance(since, target, demand, staff, bounds)
    if target > since.workers and hindrance is not Hindrance.DEATHS:
        since = _raised(since, target, staff, bounds)
    elif target < since.workers and _may_lower(since, target, demand, bounds, spread):
        fewer = max(target, min(since.workers - 1, staff.alive))
        since = replace(since, workers=fewer, lowered_at=now)
    return replace(since, hindrance=hindrance, why=_why(demand, staff, bounds, hindrance))


def _still_valid(before: Staffing | None, staff: Staff, now: float) -> Staffing:
    """The last decision, as far as it still counts. After a long gap between looks, its times do
    not: the demand may have been different in between."""
    if before is None:
        return Staffing(workers=staff.alive, looked_at=now)
    if now - before.looked_at < DOWN_AFTER_S:
        return before
    return Staffing(workers=before.workers, looked_at=now)


def _since(known: float | None, now: float) -> float:
    return now if known is None else known


def _target(known: Staffing, demand: Demand, staff: Staff, bounds: Bounds) -> int:
    """The number of own workers to approach."""
    own = max(demand.workers - staff.others, 0)
    if demand.is_capped:
        own = min(own, known.workers)
    return max(min(own, bounds.most), bounds.min)


def _hindrance(
    since: Staffing, target: int, demand: Demand, staff: Staff, bounds: Bounds
) -> Hindrance | None:
    if demand.is_capped:
        return Hindrance.STORES
    are_dying = staff.died_at is not None and since.looked_at - staff.died_at < STORM_S
    if are_dying and target > since.workers >= max(bounds.min, 1):
        return Hindrance.DEATHS
    return Hindrance.MAXIMUM if demand.workers - staff.others > bounds.most else None


def _raised(since: Staffing, target: int, staff: Staff, bounds: Bounds) -> Staffing:
    now = since.looked_at
    if since.raised_at is not None and now - since.raised_at < STEP_S:
        return since
    missing = target - since.workers
    if staff.others:  # Other processes may be filling the gap at this moment: close half of it.
        missing = ceil(missing / 2)
    # Twice the workers that are alive: those wanted before must have started first.
    most = max(2 * staff.alive, since.workers, bounds.min, 1)
    workers = min(since.workers + missing, most)
    return replace(since, workers=workers, raised_at=now) if workers > since.workers else since


def _may_lower(since: Staffing, target: int, demand: Demand, bounds: Bounds, spread: float) -> bool:
    now = since.looked_at
    if since.lowered_at is not None and now - since.lowered_at < DOWN_EVERY_S:
        return False
    if target == 0 and since.workers == 1 and demand.is_idle:
        return now - _since(since.idle_since, now) >= bounds.zero_after_s
    patience_s = bounds.down_after_s * (1 + spread)
    return now - _since(since.less_since, now) >= patience_s


def _why(demand: Demand, staff: Staff, bounds: Bounds, hindrance: Hindrance | None) -> str:
    parts = [demand.why]
    if staff.others and not demand.is_idle:
        parts.append(f"{staff.others:,} of them elsewhere")
    if hindrance is Hindrance.MAXIMUM:
        parts.append(f"{bounds.limit} is {bounds.most:,}")
    if hindrance is Hindrance.DEATHS:
        parts.append("no more while workers die")
    if max(demand.workers - staff.others, 0) < bounds.min:
        parts.append(f"the minimum is {bounds.min:,}")
    return "; ".join(parts)
