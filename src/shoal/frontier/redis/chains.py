"""Lists the chains of a crawl on Redis: see lua/chains.lua."""

from __future__ import annotations

from shoal.drivers.redis.link import RedisLink
from shoal.frontier.redis.shard import Shard
from shoal.frontier.values import Chain, CrawlState

AT_ONCE = 500


async def chains_of(link: RedisLink, shard: Shard, limit: int) -> list[Chain]:
    """The chains of a shard with tasks that have not ended; any of them, if there are more than
    `limit`."""
    if (await shard.counts())["state"] == CrawlState.CANCELLED:
        return []
    prefix = await shard.prefix()
    names = await link.command("HRANDFIELD", f"{prefix}chains", limit)
    behind = list[int]()
    for first in range(0, len(names), AT_ONCE):
        keys = (f"{prefix}chain:".encode() + name for name in names[first : first + AT_ONCE])
        behind += await link.together(*(("ZCARD", key) for key in keys))
    # One task of each is under way.
    return [Chain(name.decode(), 1 + more) for name, more in zip(names, behind, strict=True)]
