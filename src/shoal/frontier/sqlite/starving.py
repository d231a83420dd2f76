"""Lanes that no exit can be used for: when they are looked at again, and when their tasks die."""

from __future__ import annotations

from shoal.core import exit_policy as policy
from shoal.core.exits import PoolRules
from shoal.frontier.sqlite.exits import Exits, Outlook
from shoal.frontier.sqlite.lanes import LaneSchedule
from shoal.frontier.sqlite.step import Step, as_json

_UNKNOWN = PoolRules(name="")
"""What holds for a pool that nobody has brought."""


def put_off(current: Step, lane: LaneSchedule, pool: str) -> bool:
    """No exit of the pool could be used for the lane, whose host may be hit. Returns whether its
    tasks may leave without one. Else it is put off; if that lasts too long, its tasks die."""
    exits = current.exits
    rules = exits.rules.get(lane.pool, _UNKNOWN)
    outlook = exits.outlook(pool, lane.host)
    may_spend = pool not in exits.rules or exits.may_spend(pool)
    if _is_busy(exits, pool, outlook, may_spend=may_spend):
        note_look(lane, exits.now, starved=False)
        at = outlook.again_at(exits.now) if may_spend else exits.now + policy.BUSY_WAIT_S
        lane.next_at = current.by_crawl(at)
        return False
    if rules.allow_direct:
        note_look(lane, exits.now, starved=False)
        lane.next_at = current.now
        return True
    note_look(lane, exits.now, starved=True)
    dies_at = lane.state.starved_at + rules.timeout_s
    at = outlook.next_at if may_spend else _next_period(exits, pool)
    if exits.now >= dies_at:
        reason = policy.starved_reason(
            lane.pool,
            rules.timeout_s,
            listed=outlook.listed,
            out=outlook.out,
            cooling=outlook.cooling,
            may_spend=may_spend,
        )
        _starve(current, lane, reason)
        at = exits.now
    # Who does not look for long does not know that it was starved all the time.
    at = min(at, max(dies_at, exits.now), exits.now + policy.UNSEEN_S / 2)
    lane.next_at = current.by_crawl(at)
    return False


def _is_busy(exits: Exits, pool: str, outlook: Outlook, *, may_spend: bool) -> bool:
    """Whether a lease that ends, or the pace of an exit, is all that is waited for."""
    if not may_spend:
        return exits.spent[pool].leased > 0
    return outlook.busy > 0


def _next_period(exits: Exits, pool: str) -> float:
    rules = exits.rules[pool]
    return (policy.period_of(rules, exits.now) + 1) * rules.budget_period_s


def note_look(lane: LaneSchedule, now: float, *, starved: bool) -> None:
    """A lane was looked at. If nobody did for long, its crawl stood still, and it begins anew."""
    state = lane.state
    if not starved:
        state.starved_at = 0.0
    elif not state.starved_at or now - state.looked_at > policy.UNSEEN_S:
        state.starved_at = now
    state.looked_at = now


def _starve(current: Step, lane: LaneSchedule, reason: str) -> None:
    rows = current.execute("starving_tasks", lane.queue_id, policy.STARVED_BATCH).fetchall()
    ids = as_json(row_id for row_id, _ in rows)
    current.execute("starve_tasks", reason, ids)
    current.execute("end_passages", ids)
    for _, chain in rows:
        current.touch_chain(chain)
    lane.waiting -= len(rows)
    current.tally.update(waiting=-len(rows), dead=len(rows))
