"""Lists, counts, retries and purges dead tasks on Redis. This is done in parts, so that other
clients do not wait for long. The newest come first, so that a task which is retried and dies again
meanwhile does not occur twice."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import islice
from math import inf
from typing import Any

from shoal.frontier.facts import DEAD_AT_ONCE
from shoal.frontier.redis.crawl import RedisCrawl
from shoal.frontier.redis.find import dead_record
from shoal.frontier.redis.shard import Shard
from shoal.frontier.values import ALL_DEAD, DeadFilter, DeadPlace, Record

BEFORE_ALL = DeadPlace(inf, b"")
CLOCK_TICK_S = 1e-6
"""The scripts keep moments in whole microseconds."""


async def list_dead(
    on_redis: RedisCrawl, limit: int, after: DeadPlace | None, which: DeadFilter
) -> list[Record]:
    """The dead tasks that match, the newest first."""
    found = list[Record]()
    for shard in on_redis.shards:
        own = list[Record]()
        async for part in _fitting(shard, which, after or BEFORE_ALL, wants_all=True):
            own += map(dead_record, part)
            if which.fingerprints is None and len(own) >= limit:
                break
        found += own
    if after is not None:
        found = [record for record in found if record.place < after]
    return sorted(found, key=lambda record: record.place, reverse=True)[:limit]


async def count_dead(on_redis: RedisCrawl, which: DeadFilter) -> int:
    """How many dead tasks match."""
    if which == ALL_DEAD:
        return (await on_redis.stats()).dead
    total = 0
    for shard in on_redis.shards:
        async for part in _fitting(shard, which):
            total += len(part)
    return total


async def move_dead(on_redis: RedisCrawl, which: DeadFilter, *, retry: bool) -> int:
    """Retry or purge the dead tasks that match. Returns how many."""
    total = 0
    for shard in on_redis.shards:
        async for part in _fitting(shard, which):
            if part:
                total += await on_redis.retry_or_purge(shard, part, retry=retry)
    return total


async def _fitting(
    shard: Shard, which: DeadFilter, after: DeadPlace = BEFORE_ALL, *, wants_all: bool = False
) -> AsyncIterator[list[Any]]:
    """The dead tasks of a shard that match, in parts, as dead.lua returns them. If fingerprints are
    named, only those tasks are read."""
    if which.died_by is not None:
        after = min(after, DeadPlace(which.died_by + CLOCK_TICK_S, b""))
    asked = which.kind or "", which.host or "", int(wants_all)
    place = f"{after.died_at * 1e6:.0f}", after.fingerprint
    if which.fingerprints is not None:
        for some in _parts(sorted(set(which.fingerprints))):
            _, _, _, *found = await shard.run("dead", DEAD_AT_ONCE, *place, *asked, *some)
            yield found
        return
    has_more = 1
    while has_more:
        has_more, *rest = await shard.run("dead", DEAD_AT_ONCE, *place, *asked)
        place = rest[0], rest[1]
        yield rest[2:]


def _parts(fingerprints: Sequence[bytes]) -> Iterator[list[bytes]]:
    keys = iter(fingerprints)
    while part := list(islice(keys, DEAD_AT_ONCE)):
        yield part
