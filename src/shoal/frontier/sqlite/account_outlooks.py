"""Summarises the accounts of a group: how many can be used, by which worker, and when."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from shoal.core import exit_policy, identity_policy
from shoal.core.identities import account_of, group_of
from shoal.frontier.sqlite.exits import Exits
from shoal.frontier.sqlite.statements import SQL


class AccountOutlook(NamedTuple):
    """The states of a group's accounts, or of one of them, counted."""

    listed: int
    out: int
    """Accounts that rest or are banned."""
    banned: int
    free: int
    """Of the others, those that some worker may use now."""
    shared: int
    """Of these, the ones that this worker already uses."""
    full: int
    """Accounts that can be used once a lease ends."""
    next_at: float
    """When the next account becomes usable that is not now. Infinity if none does by time alone."""

    def again_at(self, now: float) -> float:
        """When to look again, if some accounts are not out, but not usable by this worker now."""
        is_any_used = self.free or self.full
        return min(self.next_at, now + exit_policy.BUSY_WAIT_S) if is_any_used else self.next_at


def account_outlook(exits: Exits, pool: str, worker: str) -> AccountOutlook:
    """The accounts of a group, or the single one named, as a worker sees them."""
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
    """When a worker should look at a group again, if it can use none of its accounts now, and some
    only because they are in use. None: now."""
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
