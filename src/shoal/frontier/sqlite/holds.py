"""Accounts for people: lists them, and keeps one from all workers for a while."""

from __future__ import annotations

import sqlite3

from msgspec.structs import replace

from shoal.core import identity_policy
from shoal.core.exits import Exit, Lent
from shoal.core.identities import (
    Account,
    IdentityReport,
    account_of,
    group_of,
    pool_of_session,
    session_of_pool,
)
from shoal.drivers.sqlite import transaction
from shoal.frontier.port import Held
from shoal.frontier.sqlite.account_lending import AccountExits, Chosen
from shoal.frontier.sqlite.exits import Exits
from shoal.frontier.sqlite.pools import exits_of, wake
from shoal.frontier.sqlite.step import Clock


def accounts_of(
    connection: sqlite3.Connection, clock: Clock, group: str, *, jars: bool
) -> list[Account]:
    """The listed accounts of a group, by name, with or without their cookies."""
    found = exits_of(connection, clock, pool_of_session(group))
    at = Exits(connection, clock())
    at.accounts.read(exit_.id for exit_ in found)
    kept = at.accounts.jars(exit_.id for exit_ in found) if jars else {}
    return [_account(at, exit_, kept.get(exit_.id, b"")) for exit_ in found]


def _account(at: Exits, exit_: Exit, jar: bytes) -> Account:
    state = at.accounts.state(exit_.id)
    shown = replace(state, login_at=max(state.login_at - at.clock.ahead, 0.0))
    return Account(name=session_of_pool(exit_.id), exit=exit_, state=shown, jar=jar)


def hold(
    connection: sqlite3.Connection, clock: Clock, identity: str, host: str | None, seconds: float
) -> Held | None:
    """Keep an account from all workers. None if it is unknown, in use or held, or no exit is
    usable."""
    with transaction(connection):
        at = Exits(connection, clock())
        exit_ = _known(at, identity)
        if exit_ is None or not exit_.is_listed or exit_.leased:
            return None
        if identity_policy.is_held(exit_, at.now):
            return None
        state, through, lent = at.accounts.state(exit_.id), None, None
        if host is not None:
            is_free, through = AccountExits(at, at.rules[exit_.pool].through, host).of(exit_, state)
            if not is_free:
                return None
        if host is not None and through is not None:
            identity_policy.bind(state, through)
            at.reserve(through, host)
            lent = Lent(through.id, through.session, through.pool)
        identity_policy.hold(exit_, at.now + seconds)
        at.put(exit_)
        at.accounts.put(exit_.id)
        at.save()
        return Held(Chosen(exit_, state, through).identity(at.accounts), lent, exit_.next_at)


def hold_on(
    connection: sqlite3.Connection, clock: Clock, held: Held, seconds: float
) -> Held | None:
    """Prolong a hold. None if it has ended."""
    with transaction(connection):
        at = Exits(connection, clock())
        if (exit_ := _held(at, held)) is None:
            return None
        identity_policy.hold(exit_, at.now + seconds)
        at.put(exit_)
        at.save()
        return replace(held, until=exit_.next_at)


def let_go(
    connection: sqlite3.Connection, clock: Clock, held: Held, report: IdentityReport
) -> bool:
    """End a hold, and look at lanes that may have waited for that. False if it had ended before.

    If the account is not listed any more, its state is stored all the same.
    """
    with transaction(connection):
        at = Exits(connection, clock())
        if (exit_ := _held(at, held)) is None:
            return False
        identity_policy.let_go(at.accounts.state(exit_.id), exit_, report, at.now)
        at.put(exit_)
        at.accounts.put(exit_.id, report.jar)
        at.save()
        wake(connection, at, exit_.pool)
        return True


def _held(at: Exits, held: Held) -> Exit | None:
    """The account of a hold that has not ended."""
    exit_ = _known(at, held.identity.name)
    is_mine = exit_ is not None and identity_policy.is_hold(exit_, held.until, at.now)
    return exit_ if is_mine else None


def _known(at: Exits, identity: str) -> Exit | None:
    """An account that is listed, or was at some time."""
    name = account_of(pool_of_session(identity))
    return at.exit(name) if name and group_of(name) in at.rules else None
