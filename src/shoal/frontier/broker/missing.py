"""Detects blocks that are in no lane because somebody has purged or deleted a queue.

The crawl keeps waiting for them, so `status` has to say how many tasks are missing. If they turn up
again, for example because a queue was restored, they are admitted as usual.
"""

from __future__ import annotations

import logging
import time
from collections import Counter

from shoal.drivers.redis.link import RedisLink
from shoal.frontier.broker.backlog import Backlog
from shoal.frontier.broker.blocks import lane_of_outside
from shoal.frontier.broker.carrier import Carrier
from shoal.frontier.redis.shard import Shard
from shoal.frontier.redis.stats import all_outside

LATE_S = 30.0
"""If a window has been empty for this long, and its lane is empty too, its blocks are missing."""
LOST_AFTER = 20
"""After this many times `LATE_S` they count as missing, even if the lane has other blocks."""
KEPT_S = 60
"""How long the number of missing tasks is kept in Redis. Some process looks again before that."""

MISSING = "%d tasks are missing in the broker, and crawl '%s' waits for them: see shoal status"

log = logging.getLogger("shoal")


class MissingSearch:
    """Looks for missing blocks from time to time, while windows are empty for long."""

    def __init__(self, link: RedisLink, shard: Shard, carrier: Carrier, late_s: float) -> None:
        self._link = link
        self._shard = shard
        self._carrier = carrier
        self._late_s = late_s
        self._next_at = 0.0
        self._is_told = False

    async def look(self, backlog: Backlog) -> None:
        """If windows have been empty for long, store in Redis how many tasks are missing."""
        dry_s = {
            window.host: window.dry_s for window in backlog.windows if window.dry_s >= self._late_s
        }
        if backlog.outbox or not dry_s or time.monotonic() < self._next_at:
            return
        self._next_at = time.monotonic() + self._late_s / 3
        lost = {host for host, for_s in dry_s.items() if for_s >= LOST_AFTER * self._late_s}
        missing, by_lane = 0, Counter[str]()
        async for _, block in all_outside(self._link, f"{self._shard.base}{backlog.crawl_id}:"):
            if block.host in lost:
                missing += block.tasks
            else:
                by_lane[lane_of_outside(self._shard.crawl, block)] += block.tasks
        for lane, tasks in by_lane.items():
            if not await self._carrier.count(lane):
                missing += tasks
        await self._note(backlog.crawl_id, missing)

    async def _note(self, crawl_id: str, missing: int) -> None:
        key = f"{self._shard.base}{crawl_id}:missing"
        if missing and not self._is_told:
            log.warning(MISSING, missing, self._shard.crawl)
        self._is_told = missing > 0
        if missing:
            await self._link.command("SET", key, missing, "EX", KEPT_S)
        else:
            await self._link.command("DEL", key)
