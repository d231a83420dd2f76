"""Reads which carrier a crawl belongs to, and the key with which its blocks are sealed.

Both are in the crawl's record on Redis and are created with it. The key never changes until the
crawl is forgotten. The carrier may be replaced while it has no blocks, so a wrong address can be
corrected.

The key is known only to Redis and to the processes that work on its crawls. So those who may write
to the broker, but not to Redis, cannot add tasks: see block_check.py.
"""

from __future__ import annotations

import logging

from shoal.drivers.redis.link import RedisLink
from shoal.errors import ConfigError, UnknownCrawl
from shoal.frontier.broker.carrier import Carrier
from shoal.frontier.redis.shard import Shard

OTHER = (
    "tasks of crawl '{crawl}' are with {theirs}, and not with {ours}: go on with that --frontier;"
    " if the broker has moved, or is gone and you start over with --fresh, write ?moved=on behind"
    " the new address"
)
MOVED = "tasks of crawl '%s' were with %s, and are with %s from now on"

log = logging.getLogger("shoal")


class CarrierRecord:
    """The carrier and key of one crawl. Read again before blocks are published, and whenever the
    crawl was started over."""

    def __init__(
        self, link: RedisLink, shard: Shard, carrier: Carrier, *, has_moved: bool = False
    ) -> None:
        """`has_moved`: if the record names another carrier, that is the former address of this
        one."""
        self._link = link
        self._shard = shard
        self._carrier = carrier
        self._has_moved = has_moved
        self.crawl_id = ""
        """The id that the crawl had when the record was read. Each start with `--fresh` gives it a
        new one."""
        self.key = b""
        """The key for seals. Empty: blocks have no seals, because only clients of Redis can write
        to the carrier, or because the crawl is older than seals."""

    async def read(self) -> None:
        """Read the record. Raises ConfigError if tasks are with another carrier; UnknownCrawl."""
        fields = ("id", "carrier", "seal_key")
        crawl_id, carrier, key = await self._link.command("HMGET", self._shard.key, *fields)
        if crawl_id is None:
            raise UnknownCrawl(self._shard.crawl)
        await self._check(crawl_id.decode(), carrier)
        self.crawl_id = crawl_id.decode()
        self.key = bytes.fromhex((key or b"").decode()) if self._carrier.is_open else b""

    async def ensure_current(self, crawl_id: str) -> None:
        """Read the record again if it is that of another `crawl_id`, or if it has no key yet: a
        crawl that begins to use a carrier gets its key while it runs."""
        if crawl_id != self.crawl_id or (self._carrier.is_open and not self.key):
            await self.read()

    async def _check(self, crawl_id: str, carrier: bytes | None) -> None:
        """Raise ConfigError if the record names another carrier that has blocks. If that has none,
        or has moved, this carrier takes its place. `carrier` is None if the crawl has none yet."""
        crawl, ours = self._shard.crawl, self._carrier.name
        theirs = carrier.decode() if carrier else ours
        if theirs == ours:
            return
        if not self._has_moved and await self._is_anything_there(crawl_id):
            raise ConfigError(OTHER.format(crawl=crawl, theirs=theirs, ours=ours))
        await self._link.command("HSET", self._shard.key, "carrier", ours)
        log.warning(MOVED, crawl, theirs, ours)

    async def _is_anything_there(self, crawl_id: str) -> bool:
        """Whether the carrier has a block. Blocks that were not published are still in Redis."""
        prefix = f"{self._shard.base}{crawl_id}:"
        asked = ("HLEN", f"{prefix}carried"), ("LLEN", f"{prefix}outbox")
        outside, unpublished = await self._link.together(*asked)
        return bool(outside != unpublished)
