"""How a crawl stands, in the few numbers that decide how long it takes. Pure: read off a look."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import msgspec

from shoal.core.exits import LaneState, PoolState
from shoal.core.failures import FailureKind
from shoal.core.identities import account_of, group_of
from shoal.core.policy import AUTO_START_S, Rate, parse_rate
from shoal.frontier.values import Chain, CrawlState, Host, Pulse, Stats
from shoal.insight.advise.seen import FleetSeen, fleet_seen
from shoal.insight.status import elapsed_s

ENOUGH_S, ENOUGH_PAGES = 60.0, 200
"""After so long, or so many pages, there is enough to go by."""
GROWING = 0.9
"""Where a page leads to so many new ones, or more, no end can be said."""
REFUSED_TRIES, REFUSED_SHARE = 3, 0.01
"""A host that has refused so many tries, and such a share of all, and is at it, is asked for too
much."""


class Look(msgspec.Struct, kw_only=True, frozen=True):
    """A crawl at one moment, as the frontier tells it."""

    at: float
    stats: Stats
    workers: list[Pulse] = []
    hosts: list[Host] = []
    """Those with the most work left."""
    are_all_hosts: bool = True
    """Whether there are no others with work left."""
    chains: list[Chain] = []
    pools: list[PoolState] = []
    lanes: list[LaneState] = []


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


def turn_s(host: HostWork, rate: Rate) -> float:
    """The time between two requests to a host."""
    if host.served_per_s:  # Its pause goes up and down: it serves no more than it has served.
        return max(rate.interval_s, 1 / host.served_per_s, host.crawl_delay_s)
    own_s = host.penalty_s or AUTO_START_S if rate.auto else max(rate.interval_s, host.penalty_s)
    return max(own_s, host.crawl_delay_s)


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


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """A crawl that is to be brought to its end."""

    at: float
    state: CrawlState
    elapsed_s: float
    ended: int
    per_s: float
    """Pages per second, in the last seconds."""
    remaining: int
    """Tasks to go, as far as they are known."""
    has_inbox: bool
    growth: float | None
    """New tasks for each that has ended, lately. None: nobody has looked twice."""
    rate: Rate
    room: int
    """Requests in flight per host."""
    hosts: list[HostWork]
    chains: list[Chain]
    pools: list[PoolWork]
    others: float
    """Pages of hosts, or chains, that are not listed."""
    broken: int
    """Hosts that are only probed. Their pages are left out: either they answer again, or their
    tasks die."""
    fleet: FleetSeen | None
    """None: nobody works on it, or nobody who says enough."""
    crawl: str = ""
    workers: int = 0
    """Those that were heard of lately."""

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to do."""
        return self.state is not CrawlState.RUNNING or not (self.remaining or self.has_inbox)

    @property
    def is_growing(self) -> bool:
        """Whether so many new tasks are found that no end can be said."""
        return self.growth is not None and self.growth >= GROWING

    @property
    def too_early(self) -> str:
        """Why nothing can be said yet. Empty: it can."""
        if self.fleet is None:
            return "no worker has done anything lately"
        if self.elapsed_s < ENOUGH_S and self.ended < ENOUGH_PAGES:
            return f"after {self.elapsed_s:.0f} s and {self.ended:,} pages"
        return ""


def situation(look: Look, before: Look | None = None) -> Situation:
    """What a look says; with one before it, also how fast the frontier grows."""
    stats = look.stats
    growth = _growth(before.stats, stats) if before is not None else None
    remaining = stats.remaining
    if stats.rules.max_pages is not None:
        remaining = min(remaining, max(stats.rules.max_pages - stats.tried, 0))
    made = Situation(
        at=look.at,
        state=stats.state,
        elapsed_s=elapsed_s(stats, look.at),
        ended=stats.ended,
        per_s=stats.pages_per_s,
        remaining=remaining,
        has_inbox=stats.inbox > 0,
        growth=growth,
        rate=parse_rate(stats.rules.rate),
        room=stats.rules.concurrency_per_host,
        hosts=_hosts(look, before),
        chains=look.chains,
        pools=_pools(look),
        others=0.0,
        broken=sum(host.is_broken for host in look.hosts),
        fleet=fleet_seen(look.workers),
        crawl=stats.crawl,
        workers=len(look.workers),
    )
    return _complete(made, stats, look)


def _growth(before: Stats, now: Stats) -> float | None:
    ended = now.ended - before.ended
    return max(now.added - before.added, 0) / ended if ended > 0 else None


def _hosts(look: Look, before: Look | None) -> list[HostWork]:
    in_lanes = Counter[str]()
    for lane in look.lanes:
        in_lanes[lane.host] += lane.waiting
    seen_s = elapsed_s(look.stats, look.at)
    paused = {host.host for host in before.hosts if host.penalty_s} if before is not None else set()
    return [
        HostWork(
            host.host,
            max(host.waiting - in_lanes[host.host], 0) + host.leased,
            host.latency_s,
            host.crawl_delay_s,
            host.penalty_s,
            host.done / seen_s if _refuses(host, host.host in paused) and seen_s else 0.0,
        )
        for host in look.hosts
        if not host.is_broken
    ]


def _refuses(host: Host, was_paused: bool) -> bool:
    """Whether a host answers 429 at the pace at which it is asked. Between two such answers its
    pause shrinks to nothing, so one look does not tell."""
    refused = host.failures_by_kind.get(FailureKind.BLOCKED, 0)
    enough = max(REFUSED_TRIES, REFUSED_SHARE * (host.done + host.failed))
    return refused >= enough and bool(host.penalty_s or was_paused)


def _pools(look: Look) -> list[PoolWork]:
    states = {pool.rules.name: pool for pool in look.pools}
    lanes: dict[str, list[LaneState]] = defaultdict(list)
    for lane in look.lanes:
        lanes[lane.pool].append(lane)
    return [
        _pool(name, waiting, states[group_of(name)])
        for name, waiting in lanes.items()
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


def _complete(made: Situation, stats: Stats, look: Look) -> Situation:
    """What is listed, such that it makes up all that is to be done: what waits for a retry is with
    hosts that are known, and what was not listed is with others."""
    chained = sum(chain.left for chain in made.chains)
    in_pools = sum(pool.pages for pool in made.pools)
    broken = sum(host.waiting + host.leased for host in look.hosts if host.is_broken)
    at_hosts = max(stats.remaining - chained - in_pools - broken, 0)
    listed = sum(host.pages for host in made.hosts)
    # The first task of each chain is with its host; so are more, where chains are not all listed.
    factor = at_hosts / listed if listed and (look.are_all_hosts or at_hosts < listed) else 1.0
    others = max(at_hosts - listed * factor, 0.0)
    # Beyond max_pages nothing is done; what is found is done as well.
    part = made.remaining / stats.remaining if stats.remaining else 1.0
    if made.growth and not made.is_growing and stats.rules.max_pages is None:
        part /= 1 - made.growth
    return msgspec.structs.replace(
        made,
        hosts=[_of_host(host, host.pages * factor * part) for host in made.hosts],
        chains=[Chain(chain.name, round(chain.left * part)) for chain in made.chains],
        pools=[msgspec.structs.replace(pool, pages=pool.pages * part) for pool in made.pools],
        others=others * part,
    )


def _of_host(host: HostWork, pages: float) -> HostWork:
    return msgspec.structs.replace(host, pages=pages)
