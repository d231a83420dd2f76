"""Lists the limits that have kept links out: see lua/adding.lua."""

from __future__ import annotations

from shoal.core.shapes import Trap
from shoal.drivers.redis.link import RedisLink
from shoal.frontier.redis.shard import Shard


async def traps_of(link: RedisLink, shard: Shard) -> list[Trap]:
    """The traps of a shard: at most `facts.MOST_TRAPS`."""
    stored = await link.command("HGETALL", f"{await shard.prefix()}kept_out")
    found = list[Trap]()
    for name, kept_out in stored.items():
        host, _, shape = name.decode().partition(" ")
        found.append(Trap(host, shape, int(kept_out)))
    return found
