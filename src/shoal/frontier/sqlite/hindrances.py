"""Finds out why a lane cannot be served although its host may be hit: exits, or accounts."""

from __future__ import annotations

from typing import NamedTuple

from shoal.core import exit_policy, identity_policy
from shoal.core.exits import PoolRules
from shoal.core.identities import is_group, session_of_pool
from shoal.frontier.sqlite.account_outlooks import account_outlook
from shoal.frontier.sqlite.exits import Exits
from shoal.frontier.sqlite.lanes import LaneSchedule


class Hindrance(NamedTuple):
    """Why no exit or account could be used."""

    is_busy: bool
    """Whether it only takes the end of a lease, or the next turn of an exit."""
    next_at: float
    """When to look again, by the clock of the exits."""
    reason: str = ""
    """The reason for the death of tasks that wait too long."""
    is_final: bool = False
    """Whether waiting is pointless."""


def hindrance(
    exits: Exits, lane: LaneSchedule, pool: str, rules: PoolRules, worker: str
) -> Hindrance:
    """What keeps a worker from being served a lane, whose tasks would now use `pool`.

    `rules` are those of the lane's own pool.
    """
    if is_group(lane.pool):
        return _of_accounts(exits, lane, rules, worker)
    return _of_exits(exits, pool, lane, rules.timeout_s, lane.pool)


def _of_exits(
    exits: Exits, pool: str, lane: LaneSchedule, timeout_s: float, named: str
) -> Hindrance:
    """The hindrance if no exit of a pool could be used at the lane's host."""
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
    """The hindrance if no account of a group could be used: if one is free, it lies in the
    exits."""
    outlook = account_outlook(exits, lane.pool, worker)
    if outlook.free and rules.through:
        return _of_account_exits(exits, lane, rules, are_shared=outlook.shared > 0)
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


def _of_account_exits(
    exits: Exits, lane: LaneSchedule, rules: PoolRules, *, are_shared: bool
) -> Hindrance:
    """The hindrance in the exits of accounts.

    An account that needs another exit waits until its requests in flight end, even if other exits
    could be used.
    """
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
