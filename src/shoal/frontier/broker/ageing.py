"""Renews blocks before the carrier deletes them: SQS keeps messages for two weeks at most.

Blocks older than most of that time are fetched, and their tasks are sent out again as new blocks.
"""

from __future__ import annotations

import logging
import time
from collections import Counter

from shoal.drivers.redis.link import RedisLink
from shoal.frontier.broker.block_mover import BlockMover
from shoal.frontier.broker.blocks import lane_of_outside
from shoal.frontier.redis.shard import Shard
from shoal.frontier.redis.stats import all_outside

OLD = 5 / 7
"""The fraction of the carrier's keeping time after which blocks are renewed: ten days of two
weeks."""
LOOK_EVERY_S = 600.0
DAY_S = 86400.0
PAUSED = (
    "the broker keeps tasks for %.0f days, and workers renew them after %.0f: a pause without any"
    " worker must not be longer than the rest"
)
EXPIRED = "the broker keeps tasks for %.0f days: %d have been there for longer, and may be lost"
MOST_AT_ONCE = 256
"""How many blocks of one lane are renewed per look."""

log = logging.getLogger("shoal")


class Ageing:
    """Looks for old blocks every `LOOK_EVERY_S`, and renews them."""

    def __init__(
        self, link: RedisLink, shard: Shard, mover: BlockMover, kept_s: float | None
    ) -> None:
        self._link = link
        self._shard = shard
        self._mover = mover
        self._kept_s = kept_s
        self._next_at = 0.0

    async def look(self, crawl_id: str) -> None:
        """Renew old blocks, if the next look is due. Does nothing if the carrier keeps blocks for
        ever."""
        if self._kept_s is None or time.monotonic() < self._next_at:
            return
        self._next_at = time.monotonic() + LOOK_EVERY_S
        now = int((await self._shard.counts())["now"])
        old_at, lost_at = now - OLD * self._kept_s * 1e6, now - self._kept_s * 1e6
        old, lost = Counter[str](), 0
        async for _, block in all_outside(self._link, f"{self._shard.base}{crawl_id}:"):
            if block.at < old_at:
                old[lane_of_outside(self._shard.crawl, block)] += 1
                lost += block.tasks if block.at < lost_at else 0
        if lost:
            log.warning(EXPIRED, self._kept_s / DAY_S, lost)
        for lane, count in old.items():
            await self._mover.renew(lane, min(count, MOST_AT_ONCE))


def warn_of_pause(kept_s: float | None) -> None:
    """Log how long a crawl may stay paused, if the carrier does not keep blocks for ever."""
    if kept_s is not None:
        log.warning(PAUSED, kept_s / DAY_S, OLD * kept_s / DAY_S)
