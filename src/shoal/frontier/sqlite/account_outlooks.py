"""How the accounts of a group are doing: what can be used, by whom, and when."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from shoal.core import exit_policy, identity_policy
from shoal.core.identities import account_of, group_of
from shoal.frontier.sqlite.exits import Exits
from shoal.frontier.sqlite.statements import SQL


class AccountOutlook(NamedTuple):
    """How the accounts of a group, or one of them, are doing."""

    listed: int
    out: int
    """Those that rest or are banned."""
    banned: int
    free: int
    """Of the others, those that may be used by somebody."""
    shared: int
    """And of these, those that the worker uses already."""
    full: int
    """And those that can be used when a lease ends."""
    next_at: float
    """When the next one may be used that cannot be now. Infinity where time alone frees none."""

    def again_at(self, now: float) -> float:
        """When a look makes sense, where some are neither out nor for this worker now."""
        is_any_used = self.free or self.full
        return min(self.next_at, now + exit_policy.BUSY_WAIT_S) if is_any_used else self.next_at


def account_outlook(exits: Exits, pool: str, worker: str) -> AccountOutlook:
    """Of all accounts of a group, or of the one that is named, as a worker sees it."""
    if only := account_of(pool):
        return _of_one(exits, only, worker)
    exits.save_changes()
    values = {"pool": pool, "now": exits.now, "worker": worker}
    *counts, at = exits.connection.execute(SQL["account_outlook"], values).fetchone()
    listed, out, banned, free, shared, full = map(int, counts)
    return AccountOutlook(listed, out, banned, free, shared, full, inf if at is None else at)


def _of_one(exits: Exits, account_id: str, worker: str) -> AccountOutlook:
    account, rules = exits.exit(account_id), exits.rules.get(group_of(account_id))
    if account is None or rules is None or not account.is_listed:
        return AccountOutlook(0, 0, 0, 0, 0, 0, inf)
    state = exits.accounts.state(account_id)
    at = identity_policy.ready_at(state, account, rules)
    is_out = account.out_until > exits.now
    is_free = not is_out and at <= exits.now
    return AccountOutlook(
        listed=1,
        out=int(is_out),
        banned=int(is_out and state.is_banned),
        free=int(is_free),
        shared=int(is_free and state.worker == worker),
        full=int(not is_out and at == inf),
        next_at=at if at > exits.now else inf,
    )


def busy_until(exits: Exits, pool: str, worker: str) -> float | None:
    """When a look at a group makes sense for a worker, if none of its accounts is for it now, and
    some merely because they are in use. None: one makes sense now."""
    if account_of(pool):
        return _one_busy_until(exits, pool, worker)
    exits.save_changes()
    values = {"pool": pool, "now": exits.now, "worker": worker}
    if exits.connection.execute(SQL["any_free_account"], values).fetchone():
        return None
    outlook = account_outlook(exits, pool, worker)
    return outlook.again_at(exits.now) if outlook.listed > outlook.out else None


def _one_busy_until(exits: Exits, account_id: str, worker: str) -> float | None:
    outlook, account = _of_one(exits, account_id, worker), exits.exit(account_id)
    if account is None or outlook.listed == outlook.out:
        return None
    state = exits.accounts.state(account_id)
    if outlook.free and identity_policy.may_use(state, account, worker):
        return None
    return outlook.again_at(exits.now)
