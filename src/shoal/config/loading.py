"""Merges all sources of settings, and derives pools of exits and groups of accounts from them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from shoal.config.environment import of_variables, variable_of
from shoal.config.file import (
    ALERTS,
    CONFIG_FILE,
    FEEDS,
    KEYS,
    PRICES,
    SCHEDULES,
    SPIDERS,
    read_file,
    unknown_key,
)
from shoal.config.rules import Rules
from shoal.config.settings import Settings, build
from shoal.core.identities import NO_SESSION
from shoal.core.pool_config import TABLES, PoolConfig, pool_of, read_tables
from shoal.core.session_config import (
    ACCOUNTS,
    SessionConfig,
    accounts_at,
    check_group_name,
    read_session_tables,
)
from shoal.core.session_config import TABLES as SESSION_TABLES
from shoal.errors import BadField, ConfigError

Table = TypeVar("Table")


def load(
    *,
    spider: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Settings:
    """The settings of this process. Later sources win; None in `options` means not given.

    Raises ConfigError, which names the source that the wrong value comes from.
    """
    of_file = read_file(folder)
    for name in sorted(of_file.keys() - KEYS):
        raise ConfigError(f"{CONFIG_FILE}: {unknown_key(name)}")
    for of_services in (SCHEDULES, FEEDS, ALERTS, PRICES, SPIDERS):
        of_file.pop(of_services, None)
    proxies = of_file.pop(TABLES) if isinstance(of_file.get(TABLES), dict) else {}
    pools = _of_tables(proxies, read_tables)
    sessions = of_file.pop(SESSION_TABLES) if isinstance(of_file.get(SESSION_TABLES), dict) else {}
    groups = _of_tables(sessions, read_session_tables)
    of_environment = of_variables(environ or {})
    given = {name: value for name, value in (options or {}).items() if value is not None}
    sources = (of_file, spider or {}, of_environment, given)
    values: dict[str, Any] = {}
    for source in sources:
        values |= _with_pool(source, pools)
    try:
        return with_groups(with_pools(build(values), pools), groups)
    except BadField as error:
        places = (CONFIG_FILE, "the spider", variable_of(error.field), "")
        raise _with_place(error, dict(zip(places, sources, strict=True))) from None


def _with_place(error: BadField, sources: Mapping[str, Mapping[str, Any]]) -> ConfigError:
    """The error, prefixed with the place of the wrong value: the last source that sets it."""
    places = [place for place, values in sources.items() if error.field in values]
    return ConfigError(f"{places[-1]}: {error}" if places and places[-1] else str(error))


def _of_tables(tables: Any, read: Callable[[Any], dict[str, Table]]) -> dict[str, Table]:
    try:
        return read(tables)
    except ConfigError as error:
        raise ConfigError(f"{CONFIG_FILE}: {error}") from None


def _with_pool(source: Mapping[str, Any], pools: Collection[str]) -> Mapping[str, Any]:
    """A source in which `proxies` also sets `proxy_pool`, unless the source sets that itself."""
    chosen = source.get(TABLES)
    if not chosen or not isinstance(chosen, str):
        return source
    return {"proxy_pool": chosen if chosen in pools else TABLES, **source}


def with_pools(settings: Settings, pools: Mapping[str, PoolConfig]) -> Settings:
    """The settings with these pools, plus one for `proxies` if it is a file and not a pool's name.

    Tasks may name all of these pools, unless the rule `pools` lists which.
    """
    known = dict(pools)
    if settings.proxies and settings.proxies not in pools:
        known[TABLES] = pool_of(settings.proxies)
    rules = settings.rules
    if not rules.pools:
        rules = msgspec.structs.replace(rules, pools=tuple(sorted(known)))
    return msgspec.structs.replace(settings, rules=rules, proxy_pools=known)


def with_groups(settings: Settings, groups: Mapping[str, SessionConfig]) -> Settings:
    """The settings with these groups of accounts, plus the accounts of `accounts`.

    Those join the group of the crawl's session. If the crawl has no session, they form a group of
    their own, which becomes the session. Tasks may name all groups, unless the rule `sessions`
    lists which. Raises ConfigError if the session does not name a valid group.
    """
    known, rules = dict(groups), settings.rules
    if settings.accounts and rules.session != NO_SESSION:
        rules = msgspec.structs.replace(rules, session=rules.session or ACCOUNTS)
        own, made = _group_of(rules), accounts_at(settings.accounts)
        if own in known:
            made = msgspec.structs.replace(known[own], accounts=made.accounts)
        known[own] = made
    if not rules.sessions:
        rules = msgspec.structs.replace(rules, sessions=tuple(sorted(known)))
    return msgspec.structs.replace(settings, rules=rules, session_groups=known)


def _group_of(rules: Rules) -> str:
    """The group of the crawl's session. Raises ConfigError if its name is not valid."""
    group = (rules.session or "").partition("#")[0]
    try:
        check_group_name(group)
    except ConfigError as error:
        raise ConfigError(f"session: {error}") from None
    return group
