"""Identities: the cookies, user agent and exit of one account, used together. Values only.

A group of accounts is kept like a pool of exits, and an account like an exit: it is lent with a
lease, to one request at a time, rests, and has its turn (exits.py). This module has only what is
special to accounts. A frontier knows accounts by name. Passwords stay with the workers, and cookies
are opaque bytes to it, which may be encrypted.

`shop` is a group, `shop#alice` the identity of its account `alice`. Among the names of pools and
exits both begin with @, so that a group and a pool of proxies may have the same name.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from shoal.core.exits import Exit

MARK = "@"
NO_SESSION = "none"
"""The session name that means no session, in crawls that have one for all tasks."""


def pool_of_session(session: str) -> str:
    """The name of a group, or of one account of it, among pools and exits."""
    return f"{MARK}{session}"


def session_of_pool(pool: str) -> str:
    """The reverse of `pool_of_session`: `shop#alice` for `@shop#alice`."""
    return pool.removeprefix(MARK)


def is_group(pool: str) -> bool:
    """Whether a pool is a group of accounts, or one account of it."""
    return pool.startswith(MARK)


def group_of(pool: str) -> str:
    """The pool whose rules apply: `@shop` for `@shop#alice`; any other name for itself."""
    return pool.partition("#")[0] if pool.startswith(MARK) else pool


def account_of(pool: str) -> str:
    """The only exit of the group that is acceptable: `@shop#alice`. Empty if any is."""
    return pool if pool.startswith(MARK) and "#" in pool else ""


class AccountState(msgspec.Struct, kw_only=True):
    """What the fleet knows about an account, beyond its state as an exit."""

    is_in: bool = False
    """Whether it is logged in, as far as anybody knows."""
    worker: str = ""
    """The worker that uses it. While requests with it are in flight, no other worker may."""
    failures: int = 0
    """Failed logins in a row."""
    is_banned: bool = False
    """Whether so many logins failed that no worker tries again by itself."""
    why: str = ""
    """Why the last login failed. One line."""
    through: str = ""
    """The exit that it is bound to, if its group uses a pool of exits."""
    through_session: int = 0
    """The session of that exit, at a gateway: another session is another address."""
    user_agent: str = ""
    """The User-Agent it logged in with: sites may bind a login to that."""
    login_url: str = ""
    """Where the login began. A redirect to this address means that the account is logged out."""
    logins: int = 0
    expired: int = 0
    """How often it was found to be logged out."""
    login_at: float = 0.0
    """When it last logged in."""


class LeasedIdentity(msgspec.Struct, frozen=True):
    """The identity with which a leased request may be sent."""

    name: str
    """`shop#alice`."""
    is_in: bool = False
    """Whether it is logged in. If not, the lease is the permission to log in instead."""
    jar: bytes = b""
    """Its cookies as the worker that logged in wrote them. Empty: none."""
    user_agent: str = ""
    login_url: str = ""
    expired: int = 0
    """How often the task was sent back already because its login had ended."""

    def __repr__(self) -> str:
        return f"LeasedIdentity({self.name})"


class LoginChange(StrEnum):
    """What a try found out about the login of its identity."""

    NONE = "none"
    IN = "in"
    """It is logged in now, and the page proved it."""
    OUT = "out"
    """It was found to be logged out."""
    FAILED = "failed"
    """It could not log in, and the host was not the reason."""
    CUT = "cut"
    """Unknown: its request was given up halfway, or by a process that cannot tell."""


class IdentityReport(msgspec.Struct, frozen=True):
    """What a try reports about the identity it was made with."""

    change: LoginChange = LoginChange.NONE
    reason: str = ""
    """Why a login failed. One line."""
    jar: bytes | None = None
    """Its cookies from now on. None: unchanged."""
    user_agent: str = ""
    login_url: str = ""
    """With `IN`: the User-Agent it logged in with, and where."""

    def __repr__(self) -> str:
        return f"IdentityReport({self.change})"


class Account(msgspec.Struct, kw_only=True):
    """An account and its state, as reported to users."""

    name: str
    """`shop#alice`."""
    exit: Exit
    """Its state as an exit: whether it is listed, in use or resting, when it was last used, how
    many requests it made."""
    state: AccountState
    jar: bytes = b""
    """Its cookies, if they were asked for."""

    def __repr__(self) -> str:
        return f"Account({self.name})"
