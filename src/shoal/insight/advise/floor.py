"""Finds the queue that takes longest however large the fleet is, and why it is no faster. Pure."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from shoal.core.policy import Rate
from shoal.insight.advise.fluid import Queue
from shoal.insight.advise.model import Limit, Model, Plan
from shoal.insight.advise.work_left import HostWork, turn_s

OTHERS = "others"
"""The name of the queue of all hosts that are not listed."""
ALIKE = 0.95
"""A queue whose least time is at least this share of the longest one's limits the crawl too."""


class FloorReason(StrEnum):
    """Why a queue is no faster."""

    RATE = "rate"
    """The crawl's rate."""
    AUTO = "auto"
    """The host's latency, under the rate `auto`."""
    CRAWL_DELAY = "crawl_delay"
    """The Crawl-delay of robots.txt."""
    REFUSED = "refused"
    """The host answers 429 if it is asked more often."""
    ASKED = "asked"
    """The host asked for a pause, by 429 or 503."""
    ROOM = "room"
    """The limit on requests in flight (`concurrency_per_host`)."""
    CHAIN = "chain"
    """A chain goes one page after the other."""
    EXITS = "exits"
    ACCOUNTS = "accounts"


_OF_LIMITS = {
    Limit.CHAINS: FloorReason.CHAIN,
    Limit.EXITS: FloorReason.EXITS,
    Limit.ACCOUNTS: FloorReason.ACCOUNTS,
}


class Floor(msgspec.Struct, frozen=True, kw_only=True):
    """The queue that takes longest. No fleet finishes the crawl sooner than this queue."""

    name: str
    pages: float
    per_s: float
    """The most pages per second."""
    seconds: float
    """The least time for all its pages."""
    turn_s: float
    """The time between two pages; 0 without a limit."""
    hold_s: float
    """How long a page keeps a slot."""
    rate: Rate
    """The crawl's rate."""
    why: FloorReason
    alike: int
    """How many other queues take about as long."""
    are_more_alike: bool
    """Whether hosts that are not listed do, too."""


def floor_of(model: Model, plan: Plan) -> Floor | None:
    """The queue that takes longest under a plan. None if no pages are left."""
    queues = model.queues(plan)
    if not queues:
        return None
    queue, limit = max(queues, key=lambda at: at[0].floor_s)
    alike = [at.name for at, _ in queues if at is not queue and at.floor_s >= queue.floor_s * ALIKE]
    return Floor(
        name=queue.name,
        pages=queue.pages,
        per_s=queue.per_s,
        seconds=queue.floor_s,
        turn_s=queue.turn_s,
        hold_s=queue.hold_s,
        rate=plan.rate,
        why=_OF_LIMITS.get(limit) or _why(queue, model, plan),
        alike=len(alike) - alike.count(OTHERS),
        are_more_alike=OTHERS in alike,
    )


def _why(queue: Queue, model: Model, plan: Plan) -> FloorReason:
    """Why a host's queue is no faster: which limit is the tightest."""
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
