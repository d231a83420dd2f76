"""Chooses accounts: which one is used next, and through which exit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from shoal.core import exit_policy, identity_policy
from shoal.core.exits import Exit, PoolRules
from shoal.core.identities import (
    AccountState,
    LeasedIdentity,
    account_of,
    group_of,
    session_of_pool,
)
from shoal.frontier.sqlite.accounts import Accounts
from shoal.frontier.sqlite.exits import Exits
from shoal.frontier.sqlite.statements import SQL


class Chosen(NamedTuple):
    """An account that was lent, and its exit, which is still to be lent."""

    account: Exit
    state: AccountState
    through: Exit | None

    def identity(self, accounts: Accounts, expired: int = 0) -> LeasedIdentity:
        """The identity as the worker that uses it is told."""
        return LeasedIdentity(
            session_of_pool(self.account.id),
            self.state.is_in,
            accounts.jar(self.account.id),
            self.state.user_agent,
            self.state.login_url,
            expired,
        )


class Chooser:
    """Chooses accounts for one worker in one step."""

    def __init__(self, exits: Exits, worker: str) -> None:
        self._exits = exits
        self._worker = worker

    def choice(self, pool: str, host: str, count: int) -> Choice:
        """The accounts of a group, or the single one named, that may be used at a host: at least
        `count`, if there are as many."""
        exits = self._exits
        rules = exits.rules.get(group_of(pool))
        if rules is None:
            return Choice(exits, self._worker, [], AccountExits(exits, "", host))
        if only := account_of(pool):
            account = exits.exit(only)
            found = [account] if account is not None and account.pool == rules.name else []
        else:
            found = self._free(rules, count)
        return Choice(exits, self._worker, found, AccountExits(exits, rules.through, host))

    def _free(self, rules: PoolRules, count: int) -> list[Exit]:
        exits = self._exits
        # The statement does not see this step's changes, and some may have to wait for their exits.
        seen = exit_policy.EXITS_SEEN if rules.through else min(count, exit_policy.EXITS_SEEN)
        values = {
            "pool": rules.name,
            "now": exits.now,
            "worker": self._worker,
            "limit": seen + exits.unsaved,
        }
        rows = exits.connection.execute(SQL["free_accounts"], values).fetchall()
        return [exits.seen(body) for (body,) in rows]


class Choice:
    """The accounts to choose from."""

    def __init__(self, exits: Exits, worker: str, found: list[Exit], through: AccountExits) -> None:
        self._exits, self._worker, self._found, self._through = exits, worker, found, through
        exits.accounts.read(account.id for account in found)
        through.read(exits.accounts.state(account.id) for account in found)

    def take(self) -> Chosen | None:
        """Choose the next usable account, and lend it. None if there is none."""
        usable = [account for account in self._found if self._is_usable(account)]
        for account in sorted(usable, key=self._rank):
            state = self._exits.accounts.state(account.id)
            is_free, through = self._through.of(account, state)
            if is_free:
                return self._lend(account, state, through)
        return None

    def _is_usable(self, account: Exit) -> bool:
        state, rules = self._exits.accounts.state(account.id), self._exits.rules[account.pool]
        is_ready = identity_policy.ready_at(state, account, rules) <= self._exits.now
        return is_ready and identity_policy.may_use(state, account, self._worker)

    def _rank(self, account: Exit) -> tuple[float, str]:
        """The order of accounts. Those that have to log in go last, even if only because their exit
        is of no use any more."""
        state = self._exits.accounts.state(account.id)
        rank = identity_policy.rank_at(state, account)
        if state.is_in and not self._through.is_kept(state):
            rank += identity_policy.LOGGED_OUT_RANK_S
        return rank, account.id

    def _lend(self, account: Exit, state: AccountState, through: Exit | None) -> Chosen:
        if through is not None:
            identity_policy.bind(state, through)
        identity_policy.lend(state, self._worker)
        self._exits.lend(account, self._through.host)
        self._exits.accounts.put(account.id)
        return Chosen(account, state, through)


class AccountExits:
    """The exits through which the accounts of a group leave for a host."""

    def __init__(self, exits: Exits, pool: str, host: str) -> None:
        self._exits, self._pool, self.host = exits, pool, host
        self._others: list[Exit] | None = None

    def read(self, states: Iterable[AccountState]) -> None:
        """Read the exits to which accounts are bound, all at once."""
        if bound := {state.through for state in states if state.through and self._pool}:
            self._exits.read(bound)
            self._exits.read_pairs((self.host, exit_id) for exit_id in bound)

    def of(self, account: Exit, state: AccountState) -> tuple[bool, Exit | None]:
        """Whether an account can leave now, and through which exit, if it needs one.

        While its own exit is busy, it waits. It gets another one only while no request with it is
        in flight.
        """
        if not self._pool:
            return True, None
        if self._pool not in self._exits.rules or not self._exits.may_spend(self._pool):
            return False, None
        if self.is_kept(state):
            bound = self._bound(state)
            return bound is not None and self._exits.is_usable(bound, self.host), bound
        another = self._another() if not account.leased else None
        return another is not None, another

    def is_kept(self, state: AccountState) -> bool:
        """Whether an account can stay with the exit it has, or needs none."""
        if not self._pool:
            return True
        bound = self._bound(state)
        pair = self._exits.pair(self.host, bound) if bound is not None else None
        return identity_policy.is_bound(state, bound, pair, self._exits.now)

    def _bound(self, state: AccountState) -> Exit | None:
        bound = self._exits.exit(state.through) if state.through else None
        return bound if bound is not None and bound.pool == self._pool else None

    def _another(self) -> Exit | None:
        if self._others is None:
            self._others = self._exits.usable(self._pool, self.host, exit_policy.EXITS_SEEN)
        usable = self._exits.ordered(self._others, self.host)
        return usable[0] if usable else None
