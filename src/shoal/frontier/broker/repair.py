"""Repairing a crawl whose blocks are lost: somebody has purged a queue, or deleted it.

Which tasks were in a lost block nobody knows any more. So they are written off, as dropped; and
that they were seen is forgotten, as it is of the pages that led to others: so they are found again
when the seeds are brought again. What is here or with the carrier stays known, and so do pages that
are done and led nowhere: these are not fetched twice.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence

from shoal.drivers.redis.link import RedisLink
from shoal.errors import StorageBusy
from shoal.frontier.broker.blocks import lane_of_outside
from shoal.frontier.broker.carrier import Carrier
from shoal.frontier.broker.freight import Freight
from shoal.frontier.port import Ended
from shoal.frontier.redis.kept import kept_fingerprints, seen_fingerprints
from shoal.frontier.redis.shard import Shard
from shoal.frontier.redis.stats import all_outside

LOST_AT_ONCE = 500
UNSEEN_AT_ONCE = 1000
OUTBOX_TRIES, OUTBOX_PAUSE_S = 60, 0.5
"""A worker needs seconds to publish to queues that are new."""


class Repair:
    """Of one crawl, on which nobody works."""

    def __init__(self, link: RedisLink, shard: Shard, carrier: Carrier, freight: Freight) -> None:
        self._link = link
        self._shard = shard
        self._carrier = carrier
        self._freight = freight

    async def write_off(self, settles_s: float) -> int:
        """Write off the blocks of lanes that are empty, now and a moment later: what somebody has
        just fetched is neither there nor here. Returns how many tasks they had."""
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
        """Publish what is still to be, or wait until a worker has: only one does at a time."""
        for _ in range(OUTBOX_TRIES):
            lows = await self._freight.lows()
            if not lows.outbox:
                return
            await self._freight.publish(lows.crawl_id)
            await asyncio.sleep(OUTBOX_PAUSE_S)
        raise StorageBusy("somebody else is publishing blocks of this crawl: try again")

    async def _in_empty_lanes(self, prefix: str) -> set[bytes]:
        by_lane = defaultdict[str, set[bytes]](set)
        async for block_id, block in all_outside(self._link, prefix):
            by_lane[lane_of_outside(self._shard.crawl, block)].add(block_id)
        counts = {lane: await self._carrier.count(lane) for lane in by_lane}
        return {each for lane, ids in by_lane.items() if not counts[lane] for each in ids}

    async def forget_seen(self, ended: Ended) -> int:
        """Forget all fingerprints but those of what is here, and of pages that have ended and led
        nowhere. Returns how many were forgotten."""
        kept, forgotten = await kept_fingerprints(self._link, await self._shard.prefix()), 0
        _, keys = await self._shard.run("unsee")
        for key in keys:
            async for chunk in seen_fingerprints(self._link, key.decode()):
                unknown = [each for each in chunk if each not in kept]
                stay = await ended(unknown) if unknown else ()
                for some in _cut([each for each in unknown if each not in stay], UNSEEN_AT_ONCE):
                    forgotten += (await self._shard.run("unsee", *some))[0]
        # What workers remember of links that they have seen is void as well.
        await self._shard.note_new_server()
        return forgotten


def _cut(ids: Sequence[bytes], size: int) -> Iterable[Sequence[bytes]]:
    return (ids[start : start + size] for start in range(0, len(ids), size))
