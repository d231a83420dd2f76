"""Identities: cookies, user agent and exit of one account, used together. Values only.

A group of accounts is kept like a pool of exits, and an account like an exit: it is lent with a
lease, to one request at a time, rests, and waits for its turn (exits.py). What only an account has
is here. A frontier knows accounts by their names; passwords stay with the workers, and cookies are
bytes to it, which may be encrypted.

`shop` is a group, `shop#alice` the identity of its account `alice`. Among the names of pools and
exits both begin with @, so that a group and a pool of proxies may have the same name.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from shoal.core.exits import Exit

MARK = "@"
NO_SESSION = "none"
"""The name that stands for no session, where a crawl has one for all its tasks."""


def pool_of_session(session: str) -> str:
    """What a group, or one account of it, is called among pools and exits."""
    return f"{MARK}{session}"


def session_of_pool(pool: str) -> str:
    """The reverse: `shop#alice` of `@shop#alice`."""
    return pool.removeprefix(MARK)


def is_group(pool: str) -> bool:
    """Whether a pool is a group of accounts, or one account of it."""
    return pool.startswith(MARK)


def group_of(pool: str) -> str:
    """The pool whose rules hold: `@shop` of `@shop#alice`; any other name is its own."""
    return pool.partition("#")[0] if pool.startswith(MARK) else pool


def account_of(pool: str) -> str:
    """The one exit of the group that will do: `@shop#alice`. Empty: any will."""
    return pool if pool.startswith(MARK) and "#" in pool else ""


class AccountState(msgspec.Struct, kw_only=True):
    """What the fleet knows of an account, beside what it knows of it as of an exit."""

    is_in: bool = False
    """Whether it is logged in, as far as anybody knows."""
    worker: str = ""
    """Who uses it: while anything is in flight with it, nobody else may."""
    failures: int = 0
    """Logins that failed in a row."""
    is_banned: bool = False
    """Whether so many failed that nobody tries again by himself."""
    why: str = ""
    """Why the last login failed. One line."""
    through: str = ""
    """The exit that it is bound to, where its group goes by a pool of exits."""
    through_session: int = 0
    """And which session of that exit, at a gateway: another one is another address."""
    user_agent: str = ""
    """What it said it was when it logged in: sites may bind a login to that."""
    login_url: str = ""
    """Where the login began. A redirect to there says that we are logged out."""
    logins: int = 0
    expired: int = 0
    """How often it was found to be logged out."""
    login_at: float = 0.0
    """When it last logged in."""


class LeasedIdentity(msgspec.Struct, frozen=True):
    """The identity that a lease lets its request be sent with."""

    name: str
    """`shop#alice`."""
    is_in: bool = False
    """If not, the lease is the permission to log in instead."""
    jar: bytes = b""
    """Its cookies as whoever logged in has written them. Empty: none."""
    user_agent: str = ""
    login_url: str = ""
    expired: int = 0
    """How often the task was sent back before because it met a login that had ended."""

    def __repr__(self) -> str:
        return f"LeasedIdentity({self.name})"


class LoginChange(StrEnum):
    """What a try says of the login of its identity."""

    NONE = "none"
    IN = "in"
    """It is logged in now, and has proved it."""
    OUT = "out"
    """It was found to be logged out."""
    FAILED = "failed"
    """It could not log in, and the host was not why."""
    CUT = "cut"
    """Nobody knows: its request was given up in the middle, or by who does not know it."""


class IdentityReport(msgspec.Struct, frozen=True):
    """What a try says of the identity that it was made with."""

    change: LoginChange = LoginChange.NONE
    reason: str = ""
    """Why a login failed. One line."""
    jar: bytes | None = None
    """Its cookies from now on. None: they stay as they are."""
    user_agent: str = ""
    login_url: str = ""
    """With `IN`: what it logged in as, and where."""

    def __repr__(self) -> str:
        return f"IdentityReport({self.change})"


class Account(msgspec.Struct, kw_only=True):
    """An account and how it is doing, for those who ask."""

    name: str
    """`shop#alice`."""
    exit: Exit
    """Whether it is listed, in use, resting; when it was last used; how many requests it made."""
    state: AccountState
    jar: bytes = b""
    """Its cookies, where they were asked for."""

    def __repr__(self) -> str:
        return f"Account({self.name})"
