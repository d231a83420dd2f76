"""What is left to do at hosts, and by exits, and how fast these allow it to be done. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence

import msgspec

from shoal.core.exits import LaneState, PoolState
from shoal.core.failures import FailureKind
from shoal.core.identities import account_of, group_of
from shoal.core.policy import AUTO_START_S, Rate
from shoal.frontier.values import Host

REFUSED_TRIES, REFUSED_SHARE = 3, 0.01
"""A host that has refused so many tries, and such a share of all, and is at it, is asked for too
much."""


class HostWork(msgspec.Struct, frozen=True):
    """What a host still has, and what it allows."""

    name: str
    pages: float
    latency_s: float = 0.0
    crawl_delay_s: float = 0.0
    penalty_s: float = 0.0
    """The pause that it asked for by 429 or 503, or that its answers led to (`auto`)."""
    served_per_s: float = 0.0
    """Pages per second that it has served, where it refuses more. 0: it refuses nothing."""


class PoolWork(msgspec.Struct, frozen=True):
    """What waits for exits of a pool, or for accounts of a group."""

    name: str
    pages: float
    hosts: tuple[str, ...]
    usable: int
    """Exits or accounts that are not out."""
    turn_s: float
    """The time between two requests by one of them to one host, or to any."""
    at_once: int
    """Requests in flight by one of them."""
    per_gb: float = 0.0
    per_request: float = 0.0
    """What it costs."""


def turn_s(host: HostWork, rate: Rate) -> float:
    """The time between two requests to a host."""
    if host.served_per_s:  # Its pause goes up and down: it serves no more than it has served.
        return max(rate.interval_s, 1 / host.served_per_s, host.crawl_delay_s)
    own_s = host.penalty_s or AUTO_START_S if rate.auto else max(rate.interval_s, host.penalty_s)
    return max(own_s, host.crawl_delay_s)


def hosts_left(
    hosts: Sequence[Host], lanes: Sequence[LaneState], seen_s: float, paused: Collection[str]
) -> list[HostWork]:
    """What hosts have left, of a crawl that has been under way for so long. `paused` are those that
    had asked for a pause some moments ago."""
    in_lanes = Counter[str]()
    for lane in lanes:
        in_lanes[lane.host] += lane.waiting
    return [
        HostWork(
            host.host,
            max(host.waiting - in_lanes[host.host], 0) + host.leased,
            host.latency_s,
            host.crawl_delay_s,
            host.penalty_s,
            host.done / seen_s if _refuses(host, host.host in paused) and seen_s else 0.0,
        )
        for host in hosts
        if not host.is_broken
    ]


def _refuses(host: Host, was_paused: bool) -> bool:
    """Whether a host answers 429 at the pace at which it is asked. Between two such answers its
    pause shrinks to nothing, so one look does not tell."""
    refused = host.failures_by_kind.get(FailureKind.BLOCKED, 0)
    enough = max(REFUSED_TRIES, REFUSED_SHARE * (host.done + host.failed))
    return refused >= enough and bool(host.penalty_s or was_paused)


def pools_left(pools: Sequence[PoolState], lanes: Sequence[LaneState]) -> list[PoolWork]:
    """What waits for exits, and for accounts."""
    states = {pool.rules.name: pool for pool in pools}
    of_pool: dict[str, list[LaneState]] = defaultdict(list)
    for lane in lanes:
        of_pool[lane.pool].append(lane)
    return [
        _pool(name, waiting, states[group_of(name)])
        for name, waiting in of_pool.items()
        if group_of(name) in states
    ]


def _pool(name: str, lanes: Sequence[LaneState], state: PoolState) -> PoolWork:
    rules = state.rules
    usable = 1 if account_of(name) else max(state.exits - state.out, 0)
    return PoolWork(
        name,
        sum(lane.waiting for lane in lanes),
        tuple(lane.host for lane in lanes),
        usable,
        max(rules.interval_s, rules.pair_interval_s / len(lanes)),
        rules.concurrency,
        rules.per_gb,
        rules.per_request,
    )
