"""Reads the status of a crawl: its progress, its speed, and what slows it down."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from shoal.coordinator.lateness import lateness
from shoal.coordinator.runs import RUNS, Run
from shoal.core.causes import Cause
from shoal.core.exit_policy import period_of
from shoal.core.exits import LaneState, PoolState
from shoal.core.identities import is_group
from shoal.core.shapes import Trap
from shoal.frontier.board import read
from shoal.frontier.causes import causes_of_death
from shoal.frontier.feeding import FeedPulse, feeds_of
from shoal.frontier.port import QueriesAndNotes
from shoal.frontier.values import Host, HostOrder, Pulse, Stats
from shoal.insight.sessions import SessionGroup, session_groups
from shoal.insight.traps import traps_shown

HOSTS_SHOWN = 10
LANES_SEEN = 1_000
FEW_HOSTS = 3
"""The concentration of failures is measured over this many hosts, the worst ones."""


class Snapshot(msgspec.Struct, kw_only=True):
    """A crawl at one moment."""

    stats: Stats
    workers: list[Pulse]
    busiest: list[Host]
    slowest: list[Host]
    failing: list[Host]
    pools: list[PoolState] = []
    """The pools of exits that its tasks may use."""
    sessions: list[SessionGroup] = []
    """The groups of accounts that its tasks may use."""
    lanes: list[LaneState] = []
    """The largest queues of tasks that wait for exits or accounts."""
    traps: list[Trap] = []
    """The hosts and URL shapes whose limits kept out the most links."""
    causes: list[Cause] = []
    """The causes of dead tasks, the most frequent first."""
    feeds: list[FeedPulse] = []
    """The feeds that bring tasks from other programs."""
    late: str | None = None
    """A message if the crawl is not done within its schedule's window, or will not be."""


async def snapshot(frontier: QueriesAndNotes, crawl: str, now: float) -> Snapshot:
    """Look at a crawl. Costs the same however large it is."""
    stats = await frontier.stats(crawl)
    run = await read(frontier.notes, RUNS, crawl, Run)
    pools, sessions = stats.rules.pools, stats.rules.sessions
    return Snapshot(
        stats=stats,
        late=lateness(run.deadline if run else None, stats, now),
        traps=await traps_shown(frontier, crawl, stats.rules),
        causes=await causes_of_death(frontier, stats),
        workers=await frontier.workers(crawl),
        busiest=await frontier.hosts(crawl, HOSTS_SHOWN, HostOrder.BUSIEST),
        slowest=await frontier.hosts(crawl, HOSTS_SHOWN, HostOrder.SLOWEST),
        failing=await frontier.hosts(crawl, HOSTS_SHOWN, HostOrder.FAILING),
        pools=[p for p in await frontier.pools() if p.rules.name in pools] if pools else [],
        sessions=await session_groups(frontier, sessions),
        feeds=await feeds_of(frontier.notes, crawl, now),
        lanes=await frontier.lanes(crawl, LANES_SEEN) if pools or sessions else [],
    )


def without_exit(seen: Snapshot) -> int:
    """How many tasks wait for an exit because none of their pool can be used at their host."""
    return sum(lane.waiting for lane in exit_lanes(seen) if lane.starved_s)


def exit_lanes(seen: Snapshot) -> list[LaneState]:
    """The queues of tasks that wait for exits, without those that wait for accounts."""
    return [lane for lane in seen.lanes if not is_group(lane.pool)]


def spent_now(pool: PoolState, now: float) -> float:
    """What a pool has cost in the current period of its budget."""
    spent = pool.spent
    return spent.spent if spent.period == period_of(pool.rules, now) else 0.0


def elapsed_s(stats: Stats, now: float) -> float:
    """How long the crawl has been, or was, under way."""
    if stats.started_at is None:
        return 0.0
    return (stats.finished_at or now) - stats.started_at


def duplicate_rate(stats: Stats) -> float:
    """The share of admitted links that were known already."""
    return _share(stats.duplicates, stats.added + stats.duplicates)


def block_rate(stats: Stats) -> float:
    """The share of requests that hosts refused to serve."""
    return _share(stats.blocked, stats.sent)


def failure_concentration(seen: Snapshot) -> float:
    """The share of all failed tries that the worst hosts have. Near 1, the fault is theirs."""
    return concentration(seen.stats, seen.failing)


def concentration(stats: Stats, failing: Sequence[Host]) -> float:
    """The share of all failed tries that the first `FEW_HOSTS` of the failing hosts have."""
    few = sum(host.failed for host in failing[:FEW_HOSTS])
    return min(_share(few, stats.retries + stats.dead), 1.0)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
