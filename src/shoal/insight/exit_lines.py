"""Describes the exits of a crawl in lines of text: the pools, and the hosts with problems."""

from __future__ import annotations

from shoal.core.exits import LaneState, PoolState
from shoal.insight.figures import counted, duration, size
from shoal.insight.status import Snapshot, exit_lanes, spent_now, without_exit

LANES_SHOWN = 5

_PERIODS = {3600.0: "this hour", 86_400.0: "today", 7 * 86_400.0: "this week"}


def exit_lines(seen: Snapshot, now: float) -> list[str]:
    """Lines about the pools, and about what keeps tasks from using them. Empty without pools."""
    lines = [pool_line(pool, now) for pool in seen.pools]
    if waiting := without_exit(seen):
        verb = "waits" if waiting == 1 else "wait"
        lines.append(f"{counted(waiting, 'task')} {verb} for an exit")
    problems = [line for lane in exit_lanes(seen) if (line := _lane_line(lane))]
    return lines + problems[:LANES_SHOWN]


def pool_line(pool: PoolState, now: float) -> str:
    """`res: 200 exits: 171 ready, 22 cooling, 7 out · 1.8 GB · 14.40 of 20.00 today`."""
    states = ((pool.ready, "ready"), (pool.cooling, "cooling"), (pool.out, "out"))
    counts = ", ".join(f"{count:,} {state}" for count, state in states if count) or "none ready"
    parts = [f"{pool.rules.name}: {counted(pool.exits, 'exit')}: {counts}"]
    if pool.spent.wire_bytes:
        parts.append(size(pool.spent.wire_bytes))
    if pool.rules.budget:
        period_s = pool.rules.budget_period_s
        period = _PERIODS.get(period_s, f"in {duration(period_s)}")
        parts.append(f"{spent_now(pool, now):.2f} of {pool.rules.budget:.2f} {period}")
    elif pool.spent.total:
        parts.append(f"{pool.spent.total:.2f} in all")
    return " · ".join(parts)


def _lane_line(lane: LaneState) -> str:
    """A line about a host whose exits have a problem. Empty if they have none."""
    problems = []
    if lane.tier_pool and lane.tier_pool != lane.pool:
        problems.append(f"blocks {lane.pool}, so its tasks go by {lane.tier_pool}")
    if lane.is_site_blocking:
        problems.append("blocks whatever exit is used, and is left alone for a while")
    if lane.starved_s:
        problems.append(f"no exit of {lane.pool} could be used for {duration(lane.starved_s)}")
    return f"{lane.host}: {', '.join(problems)}" if problems else ""
