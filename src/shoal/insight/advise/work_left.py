"""Reads off the frontier's reports how many pages are left per host and per pool of exits, and how
fast hosts and exits allow them to be fetched. Pure."""

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
"""A host is being asked too often if it pauses us, and has refused at least this many tries and at
least this share of all its tries."""

DELAYED = "a host with delayed tasks"
"""Stands for all hosts, if all tasks that are left are delayed: in no list of hosts, and there is
nothing to do for more workers than one host needs."""


class HostWork(msgspec.Struct, frozen=True):
    """The pages that a host has left, and the pace that it allows."""

    name: str
    pages: float
    latency_s: float = 0.0
    crawl_delay_s: float = 0.0
    penalty_s: float = 0.0
    """The pause that it asked for by 429 or 503, or that follows from its latency (`auto`)."""
    served_per_s: float = 0.0
    """Pages per second that it has served, if it refuses a faster pace. 0: it does not refuse."""


class PoolWork(msgspec.Struct, frozen=True):
    """The pages that wait for exits of a pool, or for accounts of a group."""

    name: str
    pages: float
    hosts: tuple[str, ...]
    usable: int
    """How many exits or accounts are not out."""
    turn_s: float
    """The least time between two requests by one exit or account."""
    at_once: int
    """How many requests one exit or account may have in flight."""
    per_gb: float = 0.0
    """The price of a gigabyte."""
    per_request: float = 0.0
    """The price of a request."""


def turn_s(host: HostWork, rate: Rate) -> float:
    """The least time between two requests to a host."""
    if host.served_per_s:  # Its penalty goes up and down; what it has served so far is reliable.
        return max(rate.interval_s, 1 / host.served_per_s, host.crawl_delay_s)
    own_s = host.penalty_s or AUTO_START_S if rate.auto else max(rate.interval_s, host.penalty_s)
    return max(own_s, host.crawl_delay_s)


def hosts_left(
    hosts: Sequence[Host], lanes: Sequence[LaneState], seen_s: float, paused: Collection[str]
) -> list[HostWork]:
    """The work left at hosts. Those that fail so often that they are only probed are left out.

    `seen_s` is how long the crawl has been under way. `paused` names the hosts that had a penalty
    at the look before.
    """
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
    """Whether a host refuses the pace at which it is asked. Its penalty may shrink to nothing
    between two refusals, so the look before counts as well."""
    refused = host.failures_by_kind.get(FailureKind.BLOCKED, 0)
    enough = max(REFUSED_TRIES, REFUSED_SHARE * (host.done + host.failed))
    return refused >= enough and bool(host.penalty_s or was_paused)


def pools_left(pools: Sequence[PoolState], lanes: Sequence[LaneState]) -> list[PoolWork]:
    """The work that waits for exits and accounts."""
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
