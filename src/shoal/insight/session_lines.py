"""Describes the accounts of a crawl in lines of text."""

from __future__ import annotations

import shlex
from collections import Counter

from shoal.core.identities import Account, group_of, pool_of_session
from shoal.insight.figures import counted, duration
from shoal.insight.sessions import (
    BANNED,
    IN_USE,
    LOGGED_IN,
    LOGGED_OUT,
    RESTING,
    SessionGroup,
    account_state,
    is_all_banned,
)
from shoal.insight.status import Snapshot

NAMED = 3
"""How many resting, and how many banned, accounts are named in a line."""


def session_lines(seen: Snapshot, now: float) -> list[str]:
    """Lines about the groups of accounts, and about what keeps tasks from using them."""
    lines = []
    for group in seen.sessions:
        lines.append(group_line(group, now))
        if is_all_banned(group):
            lines.append(
                f"session {group.name}: all accounts are banned; see why, and log them in again:"
                f" shoal sessions check {shlex.quote(seen.stats.crawl)} {group.name}"
            )
        if waiting := _starving(seen, group.name):
            verb = "waits" if waiting == 1 else "wait"
            what = f"an account of session {group.name}"
            lines.append(f"{counted(waiting, 'task')} {verb} for {what}")
    return lines


def group_line(group: SessionGroup, now: float) -> str:
    """`session shop: 3 accounts, 2 logged in, 1 resting (bob: wrong password, 4m left)`."""
    by_state: dict[str, list[Account]] = {}
    for account in group.accounts:
        by_state.setdefault(account_state(account, now), []).append(account)
    counts = Counter({state: len(those) for state, those in by_state.items()})
    parts = [counted(len(group.accounts), "account")]
    parts += [
        f"{counts[state]:,} {state}" for state in (IN_USE, LOGGED_IN, LOGGED_OUT) if counts[state]
    ]
    for state in (RESTING, BANNED):
        if those := by_state.get(state):
            parts.append(f"{len(those):,} {state} ({_named(those, now)})")
    return f"session {group.name}: {', '.join(parts)}"


def rest_of(account: Account, now: float) -> str:
    """How much longer an account rests. Empty if it does not, or if it is banned."""
    left_s = account.exit.out_until - now
    return duration(left_s) if left_s > 0 and not account.state.is_banned else ""


def _named(accounts: list[Account], now: float) -> str:
    named = []
    for account in accounts[:NAMED]:
        left = rest_of(account, now)
        why = [account.state.why] if account.state.why else []
        words = ", ".join([*why, *([f"{left} left"] if left else [])])
        name = account.name.partition("#")[2]
        named.append(f"{name}: {words}" if words else name)
    more = len(accounts) - len(named)
    return "; ".join([*named, *([f"{more:,} more"] if more else [])])


def _starving(seen: Snapshot, group: str) -> int:
    """How many tasks wait for a group of which no account can be used at their host."""
    pool = pool_of_session(group)
    return sum(
        lane.waiting for lane in seen.lanes if lane.starved_s and group_of(lane.pool) == pool
    )
