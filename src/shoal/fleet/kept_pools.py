"""Refuses to continue a crawl that used exits if its pools are no longer configured."""

from __future__ import annotations

from shoal.config import Rules
from shoal.core.identities import is_group
from shoal.core.task import DIRECT
from shoal.errors import ConfigError, UnknownCrawl
from shoal.frontier.port import Frontier

_LANES_SEEN = 1_000


async def refuse_lost_pools(frontier: Frontier, name: str, rules: Rules) -> None:
    """Check that an existing crawl may continue under these rules.

    Raises ConfigError if a pool that it uses is no longer named: new tasks would be requested from
    this machine's own address, and tasks that wait for an exit would wait for ever.
    """
    try:
        before = (await frontier.stats(name)).rules
    except UnknownCrawl:
        return
    if before.proxy_pool not in (None, DIRECT) and rules.proxy_pool is None:
        raise ConfigError(
            f"crawl '{name}' has gone by pool {before.proxy_pool} so far: name it again"
            f" (--proxies), or go on without it (--proxy-pool {DIRECT})"
        )
    if not set(before.pools) - set(rules.pools):
        return
    for lane in await frontier.lanes(name, _LANES_SEEN):
        if lane.pool not in rules.pools and not is_group(lane.pool):
            raise ConfigError(
                f"tasks of crawl '{name}' wait for exits of pool {lane.pool}, which is not known"
                " here: name it again (--proxies, or its table in shoal.toml)"
            )
