"""Checks, before a crawl begins, that its accounts can be used, and stores them in the frontier."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping

from shoal.config import Settings
from shoal.core.identities import NO_SESSION
from shoal.core.session_config import TABLES, SessionConfig
from shoal.errors import ConfigError
from shoal.frontier.port import HasExits
from shoal.sessions.accounts import Accounts
from shoal.sessions.groups import AccountGroup, groups_of, through_of
from shoal.sessions.kept_cookies import check_cookies
from shoal.sessions.vault import vault_of

log = logging.getLogger("shoal")

FlawOf = Callable[[SessionConfig], str | None]
"""Returns why accounts of a table could not be logged in. None if they could."""


async def tell_of_sessions(
    settings: Settings,
    frontier: HasExits,
    flaw_of: FlawOf,
    environ: Mapping[str, str] | None = None,
) -> None:
    """Before a crawl begins: check that all its accounts can be used, and store them in the
    frontier. The pools that they use must be stored there already. Raises ConfigError."""
    check_default_session(settings)
    tables = groups_of(settings)
    if not tables:
        return
    variables = os.environ if environ is None else environ
    vault = vault_of(settings.encrypt_key, variables)
    before = {state.rules.name: state.rules for state in await frontier.pools()}
    for name, table in tables.items():
        group = await _opened(name, table, settings, variables, flaw_of)
        known = before.get(group.pool)
        if known is not None:
            await check_cookies(frontier, name, vault)
            if known.through != group.rules.through:
                _tell_of_way(name, known.through, group.rules.through)
        await frontier.put_pool(group.rules, group.entries)


def check_default_session(settings: Settings) -> None:
    """Check that the default session of the crawl exists. Raises ConfigError."""
    group, mark, account = (settings.rules.session or NO_SESSION).partition("#")
    if group != NO_SESSION and group not in settings.rules.sessions:
        raise ConfigError(f"session: {no_such_session(group, settings.rules.sessions)}")
    if mark and not account:
        raise ConfigError(f"session: write {group}, or {group}#NAME")


def no_such_session(group: str, known: tuple[str, ...]) -> str:
    """The error message for a group that does not exist."""
    if not known:
        return (
            f"no such session: {group}"
            f" (write a table [{TABLES}.{group}] in shoal.toml, or name its --accounts)"
        )
    return f"no such session: {group} (there are: {', '.join(known)})"


async def _opened(
    name: str,
    table: SessionConfig,
    settings: Settings,
    environ: Mapping[str, str],
    flaw_of: FlawOf,
) -> AccountGroup:
    """Read a group and check it; if the crawl has a default account in it, that must exist."""
    group = AccountGroup(name, table, through_of(name, table, settings), environ)
    chosen, mark, account = (settings.rules.session or "").partition("#")
    try:
        # Only the chosen group must suit this spider: others may be for other spiders here.
        if chosen == name and (flaw := flaw_of(table)):
            raise ConfigError(flaw)
        await group.read_or_raise()
        _check_columns(table, group.accounts)
        if chosen == name and mark and account not in group.accounts:
            raise ConfigError(f"no account {account!r} is in it")
    except ConfigError as error:
        raise ConfigError(f"[{TABLES}.{name}]: {error}") from None
    return group


def _check_columns(table: SessionConfig, accounts: Accounts) -> None:
    """Check that the login form can be filled in. Raises ConfigError.

    A misspelled column must not count as failures of the accounts: all of them would rest, and be
    banned in the end, for no reason.
    """
    for column in table.columns:
        if not any(column in account.fields for account in accounts.values()):
            raise ConfigError(f"fields: the accounts have no column {column!r:.60}")


def _tell_of_way(name: str, before: str, now: str) -> None:
    def way(pool: str) -> str:
        return f"by pool {pool}" if pool else "directly"

    log.warning(
        "session %s goes %s from now on, in all crawls, and no more %s: its accounts log in anew",
        *(name, way(now), way(before)),
    )
