"""Calculates how many workers a crawl can use now, and why. Pure.

The demand goes up and down from look to look. scaling.py decides how the number of workers follows
it.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from shoal.core.policy import Rate
from shoal.frontier.values import Chain, CrawlState
from shoal.insight.advise.model import Limit, Model, plan_now
from shoal.insight.advise.paces import rate_of
from shoal.insight.advise.seen import FleetSeen
from shoal.insight.advise.situation import GROWING, Situation
from shoal.insight.advise.work_left import DELAYED
from shoal.insight.figures import counted, duration

SOON_S = 15.0
"""If the rest of the crawl takes no longer than this, new workers would start too late to help."""
FEW_S, FEW_PAGES = 10.0, 50
"""A crawl younger than this and with fewer pages has no figures to calculate from. Advice waits for
longer (`ENOUGH_S`), but the size of a fleet can soon be corrected."""
GROWS = 1 / (1 - GROWING)
"""How many times the known work is expected in all, if a crawl grows so fast that no end can be
forecast."""
STORES = (Limit.STORES, Limit.FRONTIER)
OF_WORKERS = (Limit.SLOTS, Limit.CPU)
"""Limits that more workers raise. If one of them remains and still no more workers are wanted, some
hosts take so long that more would make no difference."""
LATER = "more workers would be done hardly sooner"


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """How many workers a crawl can use."""

    workers: int
    why: str
    is_idle: bool = False
    """Whether there is nothing to do."""
    is_capped: bool = False
    """Whether a store is the limit, so that more workers would only wait for it."""


NOT_STARTED = Demand(workers=0, why="nobody has started the crawl", is_idle=True)


def demand_of(seen: Situation, *, is_one_machine: bool = False) -> Demand:
    """The demand in a situation. `is_one_machine`: more workers have to share one machine."""
    if idle := _idle(seen):
        return Demand(workers=0, why=idle, is_idle=True)
    fleet = seen.fleet
    if fleet is None:
        return Demand(workers=1, why="there is work, and no worker has done anything lately")
    if seen.elapsed_s < FEW_S and seen.ended < FEW_PAGES:
        return Demand(workers=1, why="there is work, and it is too early to say more")
    if not seen.remaining:
        return Demand(workers=1, why="seeds are to be read")
    return _modelled(_with_growth(seen), fleet, is_one_machine=is_one_machine)


def _idle(seen: Situation) -> str:
    """Why workers have nothing to do. Empty if they have."""
    if seen.state is CrawlState.NEW:
        return NOT_STARTED.why
    if seen.state is CrawlState.FINISHED and seen.has_inbox:
        return ""  # Workers collect the inbox, and the crawl goes on.
    if seen.state is CrawlState.FINISHED and seen.beyond:
        return f"the crawl is finished: --max-pages leaves out {counted(seen.beyond, 'page')}"
    if seen.state is not CrawlState.RUNNING:
        return f"the crawl is {seen.state}"
    return "nothing is to be done" if seen.is_idle else ""


def _modelled(seen: Situation, fleet: FleetSeen, *, is_one_machine: bool) -> Demand:
    model = Model(seen, fleet)
    plan = replace(plan_now(seen, fleet), are_machines_fixed=is_one_machine)
    now, best = model.forecast(plan), model.best(plan)
    workers = best.plan.workers
    limit = Limit.MEMORY if model.most(plan).limit is Limit.MEMORY else best.limit
    if now.limit in STORES:
        why = f"{_why(now.limit, seen)}, and more workers would not help"
        return Demand(workers=min(workers, fleet.workers), why=why, is_capped=True)
    if workers <= fleet.workers:
        why = LATER if limit in OF_WORKERS else _why(limit, seen)
    elif now.seconds <= SOON_S:
        workers, why = fleet.workers, f"the rest takes {duration(now.seconds)}"
    else:
        why = _why(now.limit, seen)
    return Demand(workers=workers, why=f"{why}: {counted(workers, 'worker')} would do")


def _with_growth(seen: Situation) -> Situation:
    """The situation with the work that a growing crawl is expected to find, not only the known."""
    if not seen.is_growing:
        return seen
    return replace(
        seen,
        hosts=[replace(host, pages=host.pages * GROWS) for host in seen.hosts],
        chains=[Chain(chain.name, round(chain.left * GROWS)) for chain in seen.chains],
        pools=[replace(pool, pages=pool.pages * GROWS) for pool in seen.pools],
        others=seen.others * GROWS,
    )


def _why(limit: Limit, seen: Situation) -> str:
    hosts, chains = sum(host.pages > 0 for host in seen.hosts), len(seen.chains)
    if limit is Limit.CPU and seen.fleet is not None and seen.fleet.is_kept_from_cores:
        return "workers have to wait for a core"
    if limit in (Limit.HOSTS, Limit.SLOTS) and any(host.name == DELAYED for host in seen.hosts):
        return "all tasks that are left are delayed"
    named = _hosts(hosts, seen.others) + _at(seen.rate)
    return {
        Limit.HOSTS: f"{named} {_verb(hosts, 'allow')} no more",
        Limit.SLOTS: f"{named} {_verb(hosts, 'wait')} for workers",
        Limit.CHAINS: f"{counted(chains, 'chain')} {_verb(chains, 'allow')} no more",
        Limit.EXITS: "exits allow no more",
        Limit.ACCOUNTS: "accounts allow no more",
        Limit.CPU: "reading pages keeps workers busy",
        Limit.CORES: "all cores are busy",
        Limit.MEMORY: "there is memory for no more",
        Limit.NETWORK: "the network carries no more",
        Limit.STORES: "results or the archive are the limit",
        Limit.FRONTIER: "the frontier is the limit",
        Limit.WORK: "only hosts that fail have work left",
    }[limit]


def _hosts(listed: int, others: float) -> str:
    """How many hosts there are. `others` are the pages of hosts that are not listed."""
    if others < 1:
        return counted(listed, "host")
    return f"more than {counted(listed, 'host')}" if listed else "hosts"


def _verb(count: int, verb: str) -> str:
    return f"{verb}s" if count == 1 else verb


def _at(rate: Rate) -> str:
    return f" at {rate_of(rate)}" if rate.interval_s else ""
