"""What a crawl's record says of its tasks that travel: by which carrier, and what their blocks are
sealed with. Both are made with the crawl. The key stays as it is until the crawl is forgotten, and
the carrier as long as it has anything: an address that was wrong can be set right.

The key never leaves the state server and those who work on its crawls. So who may write to the
broker, and no more than that, can bring no tasks of his own: see customs.py.
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


class Papers:
    """Those of one crawl. They are read in each of its lives, and before something is published."""

    def __init__(
        self, link: RedisLink, shard: Shard, carrier: Carrier, *, has_moved: bool = False
    ) -> None:
        """`has_moved`: another carrier in the record is this one under its former address."""
        self._link = link
        self._shard = shard
        self._carrier = carrier
        self._has_moved = has_moved
        self.crawl_id = ""
        """Of the life in which they were read."""
        self.key = b""
        """Empty: there are no seals, since nobody else can write to the carrier, or the crawl was
        made before there were any."""

    async def read(self) -> None:
        """Read them anew. Raises ConfigError if tasks are with another carrier; UnknownCrawl."""
        fields = ("id", "carrier", "seal_key")
        crawl_id, carrier, key = await self._link.command("HMGET", self._shard.key, *fields)
        if crawl_id is None:
            raise UnknownCrawl(self._shard.crawl)
        await self._check(crawl_id.decode(), carrier)
        self.crawl_id = crawl_id.decode()
        self.key = bytes.fromhex((key or b"").decode()) if self._carrier.is_open else b""

    async def of_life(self, crawl_id: str) -> None:
        """Be those of this life. A crawl whose tasks begin to travel gets its key in the middle."""
        if crawl_id != self.crawl_id or (self._carrier.is_open and not self.key):
            await self.read()

    async def _check(self, crawl_id: str, carrier: bytes | None) -> None:
        """A crawl whose tasks do not travel yet has none."""
        crawl, ours = self._shard.crawl, self._carrier.name
        theirs = carrier.decode() if carrier else ours
        if theirs == ours:
            return
        if not self._has_moved and await self._is_anything_there(crawl_id):
            raise ConfigError(OTHER.format(crawl=crawl, theirs=theirs, ours=ours))
        await self._link.command("HSET", self._shard.key, "carrier", ours)
        log.warning(MOVED, crawl, theirs, ours)

    async def _is_anything_there(self, crawl_id: str) -> bool:
        """Whether the carrier has a block. Those that nobody could publish are still here."""
        prefix = f"{self._shard.base}{crawl_id}:"
        asked = ("HLEN", f"{prefix}carried"), ("LLEN", f"{prefix}outbox")
        outside, unpublished = await self._link.together(*asked)
        return bool(outside != unpublished)
