"""The Redis frontier as a backend of the contract suite, with a fake clock."""

from __future__ import annotations

from shoal.frontier.port import Frontier
from shoal.frontier.redis import RedisFrontier
from shoal.frontier.redis.layout import FIELD, LAYOUT
from support.frontiers import CRAWL, Backend


class RedisBackend(Backend):
    """A frontier on an empty server or cluster."""

    def __init__(self, address: str) -> None:
        self.address = address
        super().__init__()

    def _open(self) -> Frontier:
        return RedisFrontier(self.address, clock=self.clock)

    async def _set_format(self, number: int | None) -> None:
        await set_layout(self.frontier, CRAWL, number or LAYOUT)


async def set_layout(frontier: Frontier, crawl: str, layout: int) -> None:
    """Write the number of a layout into a crawl's record."""
    assert isinstance(frontier, RedisFrontier)
    for shard in (await frontier._crawl(crawl)).shards:
        await frontier._link.command("HSET", shard.key, FIELD, layout)
