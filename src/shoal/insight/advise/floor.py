"""What a crawl takes at least, however large the fleet, and who says so. Pure."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from shoal.core.policy import Rate
from shoal.insight.advise.fluid import Queue
from shoal.insight.advise.model import Limit, Model, Plan
from shoal.insight.advise.work_left import HostWork, turn_s

OTHERS = "others"
ALIKE = 0.95
"""Queues that take so much of the longest one's time hold a crawl up as it does."""


class FloorReason(StrEnum):
    """Why a queue is no faster."""

    RATE = "rate"
    """The rate of the crawl."""
    AUTO = "auto"
    """How quickly the host answers, with the rate `auto`."""
    CRAWL_DELAY = "crawl_delay"
    """robots.txt asks for it."""
    REFUSED = "refused"
    """The host answers 429 to more."""
    ASKED = "asked"
    """The host has asked for a pause, by 429 or 503."""
    ROOM = "room"
    """So many requests may be in flight at once."""
    CHAIN = "chain"
    """One page after the other."""
    EXITS = "exits"
    ACCOUNTS = "accounts"


_OF_LIMITS = {
    Limit.CHAINS: FloorReason.CHAIN,
    Limit.EXITS: FloorReason.EXITS,
    Limit.ACCOUNTS: FloorReason.ACCOUNTS,
}


class Floor(msgspec.Struct, frozen=True, kw_only=True):
    """The queue that takes longest."""

    name: str
    pages: float
    per_s: float
    """Pages per second at most."""
    seconds: float
    turn_s: float
    hold_s: float
    rate: Rate
    """That of the crawl."""
    why: FloorReason
    alike: int
    """Others that take about as long."""


def floor_of(model: Model, plan: Plan) -> Floor | None:
    """What takes longest by a plan. None if there is nothing to do."""
    queues = model.queues(plan)
    if not queues:
        return None
    queue, limit = max(queues, key=lambda at: at[0].floor_s)
    alike = sum(at.floor_s >= queue.floor_s * ALIKE for at, _ in queues) - 1
    return Floor(
        name=queue.name,
        pages=queue.pages,
        per_s=queue.per_s,
        seconds=queue.floor_s,
        turn_s=queue.turn_s,
        hold_s=queue.hold_s,
        rate=plan.rate,
        why=_OF_LIMITS.get(limit) or _why(queue, model, plan),
        alike=alike,
    )


def _why(queue: Queue, model: Model, plan: Plan) -> FloorReason:
    """Of a host."""
    rate = plan.rate
    host = next((at for at in model.situation.hosts if at.name == queue.name), HostWork("", 0))
    own_s = turn_s(host, rate)
    if queue.turn_s * queue.per_s < 0.999:
        return FloorReason.ROOM
    if host.crawl_delay_s >= own_s:
        return FloorReason.CRAWL_DELAY
    if host.served_per_s and rate.interval_s < own_s:
        return FloorReason.REFUSED
    if rate.auto:
        return FloorReason.AUTO
    return FloorReason.ASKED if rate.interval_s < own_s else FloorReason.RATE
