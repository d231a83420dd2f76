"""Reduces a look at a crawl to the figures that decide how long it takes. Pure."""

from __future__ import annotations

import msgspec

from shoal.core.exits import LaneState, PoolState
from shoal.core.policy import Rate, parse_rate
from shoal.frontier.values import Chain, CrawlState, Host, Pulse, Stats
from shoal.insight.advise.seen import FleetSeen, fleet_seen
from shoal.insight.advise.work_left import DELAYED, HostWork, PoolWork, hosts_left, pools_left
from shoal.insight.status import elapsed_s

ENOUGH_S, ENOUGH_PAGES = 60.0, 200
"""A forecast needs a crawl of this age, or with this many pages."""
ENOUGH_ENDED = 30
"""How many tasks must end between two looks to measure the speed in between. `see` looks again
until they have, so that growth is measured over as many."""
GROWING = 0.9
"""If each page leads to this many new ones or more, no end can be forecast."""


class Look(msgspec.Struct, kw_only=True, frozen=True):
    """A crawl at one moment, as the frontier reports it."""

    at: float
    stats: Stats
    workers: list[Pulse] = []
    hosts: list[Host] = []
    """The hosts with the most work left."""
    are_all_hosts: bool = True
    """Whether these are all hosts with work left."""
    chains: list[Chain] = []
    pools: list[PoolState] = []
    lanes: list[LaneState] = []


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a crawl from which its end is forecast."""

    at: float
    state: CrawlState
    elapsed_s: float
    ended: int
    per_s: float
    """Pages per second in the last seconds: the higher of two measurements."""
    remaining: int
    """Known tasks that have not ended, as far as `max_pages` lets them be fetched."""
    beyond: int
    """Tasks that have not ended, but are left out because of `max_pages`."""
    has_inbox: bool
    """Whether seeds wait in the inbox."""
    growth: float | None
    """New tasks per task that has ended, lately. None: not known."""
    rate: Rate
    room: int
    """How many requests a host may have in flight."""
    hosts: list[HostWork]
    chains: list[Chain]
    pools: list[PoolWork]
    others: float
    """Pages at hosts and in chains that are not listed."""
    broken: int
    """How many hosts are only probed. Their pages are left out: either these hosts answer again, or
    their tasks die."""
    fleet: FleetSeen | None
    """None if no worker reports figures."""
    crawl: str = ""
    workers: int = 0
    """How many workers were heard of lately."""

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to do now."""
        return self.state is not CrawlState.RUNNING or not (self.remaining or self.has_inbox)

    @property
    def is_growing(self) -> bool:
        """Whether so many new tasks are found that no end can be forecast."""
        return self.growth is not None and self.growth >= GROWING

    @property
    def too_early(self) -> str:
        """Why no forecast is possible yet. Empty if it is."""
        if self.fleet is None:
            return "no worker has done anything lately"
        if self.elapsed_s < ENOUGH_S and self.ended < ENOUGH_PAGES:
            return f"after {self.elapsed_s:.0f} s and {self.ended:,} pages"
        return ""


def situation(look: Look, before: Look | None = None) -> Situation:
    """The situation at a look. With a look before it, also how fast the frontier grows."""
    stats, under_way_s = look.stats, _under_way_s(look)
    growth = _growth(before.stats, stats) if before is not None else None
    remaining = stats.remaining
    if stats.rules.max_pages is not None:
        remaining = min(remaining, max(stats.rules.max_pages - stats.tried, 0))
    made = Situation(
        at=look.at,
        state=stats.state,
        elapsed_s=under_way_s,
        ended=stats.ended,
        per_s=max(stats.pages_per_s, _per_s(before, look)),
        remaining=remaining,
        beyond=stats.remaining - remaining,
        has_inbox=stats.inbox > 0,
        growth=growth,
        rate=parse_rate(stats.rules.rate),
        room=stats.rules.concurrency_per_host,
        hosts=hosts_left(look.hosts, look.lanes, under_way_s, _paused(before)),
        chains=look.chains,
        pools=pools_left(look.pools, look.lanes),
        others=0.0,
        broken=sum(host.is_broken for host in look.hosts),
        fleet=fleet_seen(look.workers),
        crawl=stats.crawl,
        workers=len(look.workers),
    )
    return _complete(made, stats, look)


def _under_way_s(look: Look) -> float:
    """How long the crawl has been under way, by the frontier's clock, if a worker was heard of: the
    start time and the times of pulses are by that clock, and this machine's may differ."""
    heard_at = max((pulse.at for pulse in look.workers), default=0.0)
    return max(elapsed_s(look.stats, heard_at or look.at), 0.0)


def _paused(look: Look | None) -> set[str]:
    return {host.host for host in look.hosts if host.penalty_s} if look is not None else set()


def _growth(before: Stats, now: Stats) -> float | None:
    ended = now.ended - before.ended
    return max(now.added - before.added, 0) / ended if ended > 0 else None


def _per_s(before: Look | None, now: Look) -> float:
    """Pages per second between two looks. 0 if too few tasks have ended to tell."""
    if before is None or now.at <= before.at:
        return 0.0
    ended = now.stats.ended - before.stats.ended
    return ended / (now.at - before.at) if ended >= ENOUGH_ENDED else 0.0


def _complete(made: Situation, stats: Stats, look: Look) -> Situation:
    """Scale the listed work so that it adds up to all that remains.

    Delayed tasks are in no list: they are attributed to the listed hosts, if all hosts are listed.
    If not, the rest is attributed to `others`. If there is nothing but delayed tasks, they are
    attributed to one host.
    """
    chained = sum(chain.left for chain in made.chains)
    in_pools = sum(pool.pages for pool in made.pools)
    broken = sum(host.waiting + host.leased for host in look.hosts if host.is_broken)
    at_hosts = max(stats.remaining - chained - in_pools - broken, 0)
    if look.are_all_hosts and not made.hosts and at_hosts:
        made = msgspec.structs.replace(made, hosts=[HostWork(DELAYED, at_hosts)])
    listed = sum(host.pages for host in made.hosts)
    # `listed` may exceed `at_hosts`: the first task of each chain is in its host's queue as well.
    # Tasks of chains that are not listed count as those of hosts.
    factor = at_hosts / listed if listed and (look.are_all_hosts or at_hosts < listed) else 1.0
    others = max(at_hosts - listed * factor, 0.0)
    # Pages beyond max_pages are never fetched. New tasks are fetched as well.
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
