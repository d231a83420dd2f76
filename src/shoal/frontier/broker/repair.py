"""Repairs a crawl whose blocks are lost because somebody has purged or deleted a queue.

Nobody knows which tasks were in a lost block. So they are written off as dropped, and most
fingerprints are removed from the seen set, including those of pages that led to others. When the
seeds are added again, the lost tasks are found again. The fingerprints of tasks in Redis stay, and
so do those of finished pages that led nowhere: these are not fetched twice.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence

from shoal.drivers.redis.link import RedisLink
from shoal.errors import StorageBusy
from shoal.frontier.broker.block_mover import BlockMover
from shoal.frontier.broker.blocks import lane_of_outside
from shoal.frontier.broker.carrier import Carrier
from shoal.frontier.port import Ended
from shoal.frontier.redis.kept import kept_fingerprints, seen_fingerprints
from shoal.frontier.redis.shard import Shard
from shoal.frontier.redis.stats import all_outside

LOST_AT_ONCE = 500
UNSEEN_AT_ONCE = 1000
OUTBOX_TRIES, OUTBOX_PAUSE_S = 60, 0.5
"""How often and at which interval to look whether the outbox is empty: publishing to new queues
takes a worker seconds."""


class Repair:
    """Repairs one crawl, while no worker works on it."""

    def __init__(self, link: RedisLink, shard: Shard, carrier: Carrier, mover: BlockMover) -> None:
        self._link = link
        self._shard = shard
        self._carrier = carrier
        self._mover = mover

    async def write_off(self, settles_s: float) -> int:
        """Write off the blocks of lanes that are empty both now and `settles_s` later. After a
        single look, blocks that somebody has just fetched and not admitted yet would seem lost.
        Returns how many tasks were written off."""
        await self._empty_outbox()
        prefix = await self._shard.prefix()
        missing = await self._in_empty_lanes(prefix)
        if missing:
            await asyncio.sleep(settles_s)
            missing &= await self._in_empty_lanes(prefix)
        lost = 0
        for some in _cut(list(missing), LOST_AT_ONCE):
            lost += await self._shard.run("lose", *some)
        await self._link.command("DEL", f"{prefix}missing")
        return lost

    async def _empty_outbox(self) -> None:
        """Publish the outbox, or wait until a worker has: only one process publishes at a time."""
        for _ in range(OUTBOX_TRIES):
            backlog = await self._mover.backlog()
            if not backlog.outbox:
                return
            await self._mover.publish(backlog.crawl_id)
            await asyncio.sleep(OUTBOX_PAUSE_S)
        raise StorageBusy("somebody else is publishing blocks of this crawl: try again")

    async def _in_empty_lanes(self, prefix: str) -> set[bytes]:
        by_lane = defaultdict[str, set[bytes]](set)
        async for block_id, block in all_outside(self._link, prefix):
            by_lane[lane_of_outside(self._shard.crawl, block)].add(block_id)
        counts = {lane: await self._carrier.count(lane) for lane in by_lane}
        return {each for lane, ids in by_lane.items() if not counts[lane] for each in ids}

    async def forget_seen(self, ended: Ended) -> int:
        """Remove all fingerprints from the seen set, except those of tasks in Redis and those for
        which `ended` says that their page led nowhere. Returns how many were removed."""
        kept, forgotten = await kept_fingerprints(self._link, await self._shard.prefix()), 0
        _, keys = await self._shard.run("unsee")
        for key in keys:
            async for chunk in seen_fingerprints(self._link, key.decode()):
                unknown = [each for each in chunk if each not in kept]
                stay = await ended(unknown) if unknown else ()
                for some in _cut([each for each in unknown if each not in stay], UNSEEN_AT_ONCE):
                    forgotten += (await self._shard.run("unsee", *some))[0]
        # Workers remember links that they have seen. This makes them forget those.
        await self._shard.note_new_server()
        return forgotten


def _cut(ids: Sequence[bytes], size: int) -> Iterable[Sequence[bytes]]:
    return (ids[start : start + size] for start in range(0, len(ids), size))
