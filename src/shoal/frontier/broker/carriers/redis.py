"""Keeps blocks in Redis itself: up to 64 tasks in one compressed string. Needs the extra `redis`.

lane:blocks ─ fetch ─▶ lane:held, lane:until ─ ack ─▶ gone
  the list              by token   when others get it
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple, TypeVar

from shoal.core.addresses import parse_address
from shoal.drivers.redis.link import DEFAULT_PORT, SENTINEL_PORT, RedisLink, check
from shoal.drivers.redis.scripts import Scripts
from shoal.errors import ConfigError
from shoal.frontier.broker.carrier import Block, Carrier, Delivery
from shoal.frontier.broker.carriers.strangers import sorted_out
from shoal.frontier.broker.encoding import encode

MOST_BYTES = 8 * 2**20
AT_ONCE = 500
"""Blocks in one command."""
HELD_S = 60.0
"""How long a fetched block is held: longer than it takes to acknowledge it."""

T = TypeVar("T")

_scripts = Scripts("shoal.frontier.broker.carriers")


class Receipt(NamedTuple):
    """Identifies a block that is held."""

    lane: str
    token: bytes


class RedisCarrier(Carrier):
    """Keeps blocks on a server, a sentinel's master or a cluster. Each lane is on one server."""

    def __init__(
        self, address: str, more_options: Collection[str] = (), *, held_s: float = HELD_S
    ) -> None:
        """Tests set a shorter `held_s`."""
        is_sentinel = address.startswith("redis+sentinel:")
        where = parse_address(address, SENTINEL_PORT if is_sentinel else DEFAULT_PORT)
        check(where, more_options)
        self._link = RedisLink(where)
        self._held_ms = round(held_s * 1000)

    @property
    def name(self) -> str:
        return "Redis itself (?blocks=on)"

    @property
    def is_open(self) -> bool:
        return False

    @property
    def most_bytes(self) -> int:
        return MOST_BYTES

    async def declare(self, lane: str) -> None:
        key, *_ = _keys(lane)
        kind = (await self._link.command("TYPE", key)).decode()
        if kind not in ("list", "none"):
            raise ConfigError(f"{self._link.shown}: {key} is no list but a {kind}: delete it")

    async def publish(self, blocks: Sequence[Block]) -> None:
        in_order = sorted(blocks, key=lambda block: block.lane)
        for lane, group in groupby(in_order, key=lambda block: block.lane):
            key, *_ = _keys(lane)
            for some in _cut(list(group)):
                await self._link.command("RPUSH", key, *map(encode, some))
        await self._link.replicated()

    async def fetch(self, lane: str, limit: int) -> list[Delivery]:
        taken = await self._link.run(
            _scripts["blocks_fetch"], _keys(lane), min(limit, AT_ONCE), self._held_ms
        )
        tokens, blocks = taken[::2], taken[1::2]
        found = ((data, Receipt(lane, t)) for t, data in zip(tokens, blocks, strict=True))
        deliveries, strangers = sorted_out(found, lane, MOST_BYTES)
        if strangers:
            await self.ack(strangers)
        return deliveries

    async def ack(self, receipts: Sequence[object]) -> None:
        ours = sorted(one for one in receipts if isinstance(one, Receipt))
        for lane, group in groupby(ours, key=lambda one: one.lane):
            for tokens in _cut([one.token for one in group]):
                await self._link.run(_scripts["blocks_ack"], _keys(lane), *tokens)

    async def count(self, lane: str) -> int:
        key, held, _ = _keys(lane)
        waiting = await self._link.command("LLEN", key)
        return int(waiting) + int(await self._link.command("HLEN", held))

    async def drop(self, lane: str) -> None:
        await self._link.command("UNLINK", *_keys(lane))

    async def close(self) -> None:
        await self._link.close()


def _keys(lane: str) -> list[str]:
    """The keys of a lane. The braces keep them on one server of a cluster. All keys begin with
    `shoal:`, because a Redis user may be allowed no others."""
    name = f"shoal:{{{lane}}}"
    return [f"{name}:blocks", f"{name}:held", f"{name}:until"]


def _cut(things: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(things), AT_ONCE):
        yield things[start : start + AT_ONCE]
