"""Refuses to continue a crawl that used accounts if its sessions are no longer configured."""

from __future__ import annotations

from shoal.config import Rules
from shoal.core.identities import NO_SESSION, group_of, is_group, session_of_pool
from shoal.errors import ConfigError, UnknownCrawl
from shoal.frontier.port import Frontier

_LANES_SEEN = 1_000


async def refuse_lost_sessions(frontier: Frontier, name: str, rules: Rules) -> None:
    """Check that an existing crawl may continue under these rules.

    Raises ConfigError if a session that it uses is no longer named: new tasks would be requested
    without an account, and tasks that wait for an account would wait for ever.
    """
    try:
        before = (await frontier.stats(name)).rules
    except UnknownCrawl:
        return
    if before.session not in (None, NO_SESSION) and rules.session is None:
        raise ConfigError(
            f"crawl '{name}' has gone with session {before.session} so far: name it again"
            f" (--session {before.session}), or go on without it (--session {NO_SESSION})"
        )
    if not set(before.sessions) - set(rules.sessions):
        return
    for lane in await frontier.lanes(name, _LANES_SEEN):
        group = session_of_pool(group_of(lane.pool))
        if is_group(lane.pool) and group not in rules.sessions:
            raise ConfigError(
                f"tasks of crawl '{name}' wait for accounts of session {group}, which is not known"
                " here: name it again (--accounts, or its table in shoal.toml)"
            )
