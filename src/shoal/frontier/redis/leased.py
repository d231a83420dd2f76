"""Lists the tasks that are leased to workers, on Redis."""

from __future__ import annotations

from typing import Any

from shoal.frontier.redis.crawl import RedisCrawl
from shoal.frontier.redis.packing import unpack
from shoal.frontier.redis.shard import MOST_LEASES, Shard
from shoal.frontier.values import Leased


async def leased(on_redis: RedisCrawl, limit: int) -> list[Leased]:
    """The leased tasks of a crawl, in the order in which their leases expire."""
    found = [one for shard in on_redis.shards for one in await _of_shard(shard, limit)]
    return sorted(found, key=lambda one: one.expires)[:limit]


async def _of_shard(shard: Shard, limit: int) -> list[Leased]:
    """The leased tasks of a shard, read in parts. A lease that is renewed between two parts may be
    read twice."""
    found: dict[bytes, Leased] = {}
    for first in range(0, limit, MOST_LEASES):
        count = min(MOST_LEASES, limit - first)
        part = await shard.run("leased", first, count)
        found.update((one.fingerprint, one) for one in map(_leased, part))
        if len(part) < count:
            break
    return list(found.values())


def _leased(values: list[Any]) -> Leased:
    expires, queue, priority, packed, worker, since = values
    fingerprint, task, _ = unpack(packed, queue.decode(), int(priority))
    return Leased(
        fingerprint=fingerprint,
        url=task.url,
        host=task.site,
        worker=worker.decode(),
        since=int(since) / 1e6,
        expires=int(expires) / 1e6,
        tries=task.retry_count,
    )
