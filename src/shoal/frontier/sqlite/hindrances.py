"""What keeps a lane from being served, where its host may be hit: its exits, or its accounts."""

from __future__ import annotations

from typing import NamedTuple

from shoal.core import exit_policy, identity_policy
from shoal.core.exits import PoolRules
from shoal.core.identities import is_group, session_of_pool
from shoal.frontier.sqlite.account_outlooks import account_outlook
from shoal.frontier.sqlite.exits import Exits
from shoal.frontier.sqlite.lanes import LaneSchedule


class Hindrance(NamedTuple):
    """Why nothing could be used."""

    is_busy: bool
    """Whether a lease that ends, or a pace, is all that is waited for."""
    next_at: float
    """When a look makes sense, by the clock of the exits."""
    reason: str = ""
    """What those die of who wait too long."""
    is_final: bool = False
    """Whether there is nothing to wait for."""


def hindrance(
    exits: Exits, lane: LaneSchedule, pool: str, rules: PoolRules, worker: str
) -> Hindrance:
    """What keeps a lane from being served to a worker, whose tasks are to use this pool now. The
    rules are those of the lane's own."""
    if is_group(lane.pool):
        return _of_accounts(exits, lane, rules, worker)
    return _of_exits(exits, pool, lane, rules.timeout_s, lane.pool)


def _of_exits(
    exits: Exits, pool: str, lane: LaneSchedule, timeout_s: float, named: str
) -> Hindrance:
    """Of a pool whose exits could not be used at the host of a lane."""
    outlook = exits.outlook(pool, lane.host)
    may_spend = pool not in exits.rules or exits.may_spend(pool)
    if not may_spend and exits.spent[pool].leased > 0:
        at = min(_next_period(exits, pool), exits.now + exit_policy.BUSY_WAIT_S)
        return Hindrance(is_busy=True, next_at=at)
    if may_spend and outlook.busy > 0:
        return Hindrance(is_busy=True, next_at=outlook.again_at(exits.now))
    reason = exit_policy.starved_reason(
        named,
        timeout_s,
        listed=outlook.listed,
        out=outlook.out,
        cooling=outlook.cooling,
        may_spend=may_spend,
    )
    at = outlook.next_at if may_spend else _next_period(exits, pool)
    return Hindrance(is_busy=False, next_at=at, reason=reason)


def _of_accounts(exits: Exits, lane: LaneSchedule, rules: PoolRules, worker: str) -> Hindrance:
    """Of a group. If one of its accounts may be used, it is the exits that they go by."""
    outlook = account_outlook(exits, lane.pool, worker)
    if outlook.free and rules.through:
        return _of_ways(exits, lane, rules, are_shared=outlook.shared > 0)
    if outlook.listed > outlook.out:
        return Hindrance(is_busy=True, next_at=outlook.again_at(exits.now))
    reason = identity_policy.starved_reason(
        session_of_pool(lane.pool),
        rules.timeout_s,
        listed=outlook.listed,
        resting=outlook.out - outlook.banned,
        banned=outlook.banned,
    )
    is_final = 0 < outlook.listed == outlook.banned
    return Hindrance(is_busy=False, next_at=outlook.next_at, reason=reason, is_final=is_final)


def _of_ways(exits: Exits, lane: LaneSchedule, rules: PoolRules, *, are_shared: bool) -> Hindrance:
    """Of the exits that accounts go by. One that is to get another exit waits for the end of what
    is in flight with it, be there exits that could be used."""
    found = _of_exits(exits, rules.through, lane, rules.timeout_s, rules.through)
    may_spend = rules.through in exits.rules and exits.may_spend(rules.through)
    are_usable = may_spend and exits.outlook(rules.through, lane.host).usable > 0
    if are_shared if found.is_busy else are_usable:
        at = min(found.next_at, exits.now + exit_policy.BUSY_WAIT_S)
        return Hindrance(is_busy=True, next_at=at)
    return found


def _next_period(exits: Exits, pool: str) -> float:
    rules = exits.rules[pool]
    return (exit_policy.period_of(rules, exits.now) + 1) * rules.budget_period_s
