"""The state of accounts, in words and as JSON. Nothing here shows a cookie's value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from shoal.core.cookies import Jar
from shoal.core.exits import PoolRules
from shoal.core.identities import Account, is_group, pool_of_session, session_of_pool
from shoal.core.identity_policy import is_held
from shoal.core.task import Task
from shoal.errors import ConfigError
from shoal.frontier.port import HasExits, QueriesAndNotes

IN_USE, RESTING, BANNED = "in use", "resting", "banned"
LOGGED_IN, LOGGED_OUT = "logged in", "logged out"
CANNOT_BE_USED = (IN_USE, RESTING, BANNED)

Json = dict[str, Any]


class SessionGroup(msgspec.Struct, kw_only=True):
    """A group of accounts at one moment."""

    name: str
    rules: PoolRules
    accounts: list[Account]


async def session_groups(frontier: HasExits, names: Iterable[str]) -> list[SessionGroup]:
    """The groups with these names that the fleet knows."""
    wanted = {pool_of_session(name) for name in names}
    if not wanted:
        return []
    known = [state.rules for state in await frontier.pools()]
    return [await _group(frontier, rules) for rules in known if rules.name in wanted]


async def all_groups(frontier: HasExits) -> list[SessionGroup]:
    """All groups that the fleet knows."""
    known = [state.rules for state in await frontier.pools()]
    return [await _group(frontier, rules) for rules in known if is_group(rules.name)]


async def _group(frontier: HasExits, rules: PoolRules) -> SessionGroup:
    name = session_of_pool(rules.name)
    return SessionGroup(name=name, rules=rules, accounts=await frontier.accounts(name))


def session_of(task: Task) -> str | None:
    """The session of a task: a group (`shop`) or an account (`shop#alice`). None without one."""
    pool = task.pool
    return session_of_pool(pool) if pool is not None and is_group(pool) else None


def account_state(account: Account, now: float) -> str:
    """The state of an account, in a word or two."""
    if account.exit.leased or is_held(account.exit, now):
        return IN_USE
    if account.state.is_banned:
        return BANNED
    if account.exit.out_until > now:
        return RESTING
    return LOGGED_IN if account.state.is_in else LOGGED_OUT


def is_all_banned(group: SessionGroup) -> bool:
    """Whether all accounts of a group are banned: nothing is fetched with it until people act."""
    return bool(group.accounts) and all(account.state.is_banned for account in group.accounts)


async def wait_of(frontier: HasExits, task: Task, now: float) -> str:
    """What a waiting task waits for, if it is an account. Empty if it needs none or one is free."""
    session = session_of(task)
    if session is None:
        return ""
    group, _, name = session.partition("#")
    accounts = await frontier.accounts(group)
    if name:
        accounts = [account for account in accounts if account.name == session]
    states = Counter(account_state(account, now) for account in accounts)
    if any(state not in CANNOT_BE_USED for state in states):
        return ""
    counted = [f"{states[state]} {state}" for state in CANNOT_BE_USED if states[state]]
    what = f"account {session}" if name else f"an account of session {group}"
    return f"waits for {what}: {', '.join(counted) or 'there is none'}"


def group_json(group: SessionGroup, now: float) -> Json:
    """A group, its accounts, and how many of them are in which state."""
    states = Counter(account_state(account, now) for account in group.accounts)
    return {
        "session": group.name,
        "pool": group.rules.through or None,
        "concurrency": group.rules.concurrency,
        "states": dict(sorted(states.items())),
        "all_banned": is_all_banned(group),
        "accounts": [account_json(account, now) for account in group.accounts],
    }


def account_json(account: Account, now: float) -> Json:
    """An account, without its cookies."""
    state, exit_ = account.state, account.exit
    is_resting = exit_.out_until > now and not state.is_banned
    return {
        "identity": account.name,
        "state": account_state(account, now),
        "logged_in": state.is_in,
        "worker": state.worker or None,
        "resting_s": round(exit_.out_until - now, 3) if is_resting else None,
        "logins": state.logins,
        "failures": state.failures,
        "why": state.why or None,
        "expired": state.expired,
        "requests": exit_.requests,
        "used_at": exit_.used_at or None,
        "login_at": state.login_at or None,
        "exit": state.through or None,
        "user_agent": state.user_agent or None,
        "login_url": state.login_url or None,
    }


def cookies_json(jar: Jar) -> list[Json]:
    """The cookies of a jar, without their values."""
    return [
        {
            "name": cookie.name,
            "domain": cookie.domain,
            "path": cookie.path,
            "expires": cookie.expires,
            "host_only": cookie.host_only,
            "secure": cookie.secure,
            "http_only": cookie.http_only,
        }
        for cookie in jar.cookies
    ]


def exit_of_try(logged: str) -> str:
    """The exit of a try. In the page log, an account may come before it: `shop#alice dc-1`."""
    first, _, rest = logged.partition(" ")
    return rest if "#" in first else logged


async def groups_of_crawl(frontier: QueriesAndNotes, crawl: str) -> list[SessionGroup]:
    """The groups of accounts of a crawl. Raises ConfigError if it has none, UnknownCrawl."""
    sessions = (await frontier.stats(crawl)).rules.sessions
    groups = await session_groups(frontier, sessions)
    if not groups:
        why = "no worker has brought any accounts yet" if sessions else "it has no sessions"
        raise ConfigError(f"crawl '{crawl}': {why}")
    return groups


def chosen(groups: Sequence[SessionGroup], wanted: Sequence[str]) -> list[Account]:
    """The accounts with these names, or in groups with these names, each once. Without names, all.
    Raises ConfigError if a name is unknown."""
    by_name = {account.name: [account] for group in groups for account in group.accounts}
    by_name |= {group.name: group.accounts for group in groups}
    names = list(wanted) or [group.name for group in groups]
    for name in names:
        if name not in by_name:
            there_are = ", ".join(group.name for group in groups)
            raise ConfigError(f"no such account: {name} (sessions: {there_are})")
    found = {account.name: account for name in names for account in by_name[name]}
    return list(found.values())
