"""Groups of accounts as users write them: the tables [sessions.NAME] of shoal.toml."""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from shoal.core.fields import checked
from shoal.core.identities import NO_SESSION
from shoal.core.policy import parse_duration
from shoal.core.urls import parse
from shoal.errors import ConfigError

TABLES = "sessions"
"""The name of the tables: [sessions.NAME]."""
ACCOUNTS = "accounts"
"""The name of the group that --accounts FILE makes if the crawl names no session."""
MAX_ACCOUNTS = 10_000
USER_AGENT = "user_agent"
"""The column that has an account's User-Agent."""
MAX_USER_AGENT = 500
SOURCES = ("file:", "env:", "command:")
COLUMN = re.compile(r"\{([^{}]*)\}")
"""A reference to a column of the accounts, in `fields`."""

_is_name = re.compile("[A-Za-z0-9][A-Za-z0-9_-]{0,31}").fullmatch
_is_account = re.compile("[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}").fullmatch

Duration = Annotated[str, Meta(extra={"check": parse_duration})]


class SessionConfig(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """One [sessions.NAME] table."""

    accounts: Annotated[str | list[str], Meta(description="Where its accounts are")]
    """Where the accounts are: file:PATH, env:NAME (the accounts, or the path of a file),
    command:PROGRAM ARGUMENTS; one or several."""
    refresh: Duration = "10m"
    """How often the accounts are read again."""
    login_url: str = ""
    """The page with the login form. A redirect to it means that a session has ended."""
    form: str = ""
    """CSS selector of the login form. If empty, the spider logs in with its method `login`."""
    fields: dict[str, str] = {}
    """The values for the form: `{ user = "{user}", password = "{password}" }`. Braces name columns
    of the accounts."""
    button: str = ""
    """CSS selector of the button to press, if that is not the first one."""
    logged_in: str = ""
    """CSS selector of something that only pages for logged-in users have: the proof of a login. The
    spider's own `logged_in` takes precedence."""
    concurrency: Annotated[int, Meta(ge=1, le=1000)] = 1
    """Requests in flight with one account."""
    pool: str = ""
    """The pool of exits, of which each account uses one of its own. By default the crawl's."""
    user_agent: str = ""
    """The User-Agent of its requests. A column `user_agent` sets it for each account."""
    timeout: Duration = "1h"
    """A task dies if no account could be used for it during this time."""

    @property
    def sources(self) -> list[str]:
        """The places of the accounts; always a list."""
        return [self.accounts] if isinstance(self.accounts, str) else self.accounts

    @property
    def columns(self) -> list[str]:
        """The columns of the accounts that the values for the form use."""
        return [name for text in self.fields.values() for name in COLUMN.findall(text)]


def read_session_tables(tables: Any) -> dict[str, SessionConfig]:
    """Read the groups of a [sessions] table, by name. Raises ConfigError, naming table and key."""
    if not isinstance(tables, dict):
        raise ConfigError(f"{TABLES}: write [{TABLES}.NAME]")
    return {name: _read(name, table) for name, table in tables.items()}


def accounts_at(source: str) -> SessionConfig:
    """The group that --accounts makes from a file, or from another place with accounts."""
    return SessionConfig(accounts=source if source.startswith(SOURCES) else f"file:{source}")


def check_group_name(name: str) -> None:
    """Check the name of a group. Raises ConfigError if no group can have it."""
    if not _is_name(name):
        raise ConfigError("a session's name has at most 32 letters, digits, - and _")
    if name.lower() == NO_SESSION:
        raise ConfigError(f"no session can be called {NO_SESSION}: that means without one")


def check_account_name(name: str) -> None:
    """Check the name of an account. Raises ConfigError if no account can have it. The message does
    not show the name: in a malformed file it may be a password."""
    if not _is_account(name):
        raise ConfigError(
            "the name of an account has at most 64 letters, digits and . _ @ + -"
            ": give it one in a column name, if it logs in with another"
        )


def check_user_agent(text: str) -> None:
    """Check a User-Agent. Raises ConfigError if no request can have it. The message does not show
    it: the columns of a file may be mixed up."""
    if len(text) > MAX_USER_AGENT or not text.isprintable():
        raise ConfigError(f"{USER_AGENT}: a line of at most {MAX_USER_AGENT} characters")


def _read(name: str, table: Any) -> SessionConfig:
    try:
        if not isinstance(table, dict):
            raise ConfigError(f"expected a table, got {type(table).__name__}")
        check_group_name(name)
        if name == ACCOUNTS:
            raise ConfigError("this name is for --accounts FILE")
        group = checked(table, SessionConfig)
        _check(group)
    except ConfigError as error:
        raise ConfigError(f"[{TABLES}.{name}]: {error}") from None
    return group


def _check(group: SessionConfig) -> None:
    """Check what involves several fields."""
    if not group.sources:
        raise ConfigError("accounts: none are named")
    for source in group.sources:
        if not source.startswith(SOURCES):
            raise ConfigError("accounts: write file:PATH, env:NAME or command:PROGRAM")
    check_user_agent(group.user_agent)
    if group.login_url:
        parse(group.login_url)
    if group.form and not (group.login_url and group.fields):
        raise ConfigError("form: needs login_url and fields")
    if (group.fields or group.button) and not group.form:
        raise ConfigError("fields: needs form")
