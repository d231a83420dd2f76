"""The blocks of one crawl: how they leave Redis, and how they come back.

    outbox ─ publish, confirmed ─▶ carrier ─ fetch ─▶ admit ─ 5 s, the same server ─▶ acknowledged
              then cleared

Every step may be the last one of its process, and the next is made by another. What is published
and not cleared is published twice; what is admitted and not acknowledged comes twice: the second
time its id is unknown, and its tasks are.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Iterable, Sequence
from contextlib import suppress

from shoal.drivers.redis.link import RedisLink
from shoal.errors import StorageError
from shoal.frontier.broker.bill import Bill
from shoal.frontier.broker.blocks import Travelling, from_outbox, lane_of, shared_lanes
from shoal.frontier.broker.carrier import Carrier, Delivery
from shoal.frontier.broker.customs import Customs
from shoal.frontier.broker.lows import Low, Lows, lows_of
from shoal.frontier.broker.papers import Papers
from shoal.frontier.broker.receipts import Receipts
from shoal.frontier.redis.forms import pack_values
from shoal.frontier.redis.shard import Shard

PUBLISHED_AT_ONCE = 256
"""Blocks, some 3 MB. Where queues are new, so many wait two seconds together."""
WINDOWS_AT_ONCE = 200
FETCHED_AT_ONCE = 32
"""Blocks: they are in memory until they are acknowledged."""
FETCHES = 100
"""Of one lane, before others have their turn: what is fetched may all be of no use."""
LITTERED_FROM = 32
"""After so many fetches in vain more is fetched than is wanted: what is of no use has to go."""
MOST_KEPT = 4096
"""Blocks that one process may have fetched and not acknowledged."""
LANES_AT_ONCE = 8
"""A broker takes its time for each, SQS above all where there is nothing."""
LATE_AFTER_S = 20.0
LATE_EVERY_S = 5.0
"""Blocks that did not come for so long are asked for so often."""
LOCK_MS = 10_000
"""How long others wait for one that has died while it published. Too short does no harm."""

log = logging.getLogger("shoal")


class Freight:
    """Moves the blocks of one crawl. What is published and what is fetched do not wait for each
    other: making queues takes seconds."""

    def __init__(
        self,
        link: RedisLink,
        shard: Shard,
        carrier: Carrier,
        papers: Papers,
        receipts: Receipts,
        bill: Bill,
    ) -> None:
        self._link = link
        self._shard = shard
        self._carrier = carrier
        self._papers = papers
        self._customs = Customs(link, shard.crawl, papers)
        self._bill = bill
        self.receipts = receipts
        self.outbox = 0
        """Blocks that nobody has published, when it was last looked."""
        self._late_at = 0.0

    async def lows(self, more: int = 0) -> Lows:
        """Which windows want blocks, and how it stands. `more` tasks are wanted at once. Raises
        ConfigError if the crawl's tasks are with another carrier."""
        at = self.receipts.now
        answer = await self._shard.run("lows", WINDOWS_AT_ONCE, more)
        lows = lows_of(at, answer)
        self.outbox = lows.outbox
        await self._papers.of_life(lows.crawl_id)
        return lows

    async def publish(self, crawl_id: str) -> None:
        """Empty the outbox, unless somebody else is at it."""
        prefix = self._prefix(crawl_id)
        lock, token = f"{prefix}publishing", secrets.token_hex(8)
        try:
            if not await self._link.command("SET", lock, token, "NX", "PX", LOCK_MS):
                return
            await self._papers.read()
            while packed := await self._outbox(prefix):
                await self._publish(prefix, packed)
                await self._bill.note(prefix)
                await self._link.command("PEXPIRE", lock, LOCK_MS)
        finally:
            with suppress(StorageError):  # Then the lock goes by itself.
                if await self._link.command("GET", lock) == token.encode():
                    await self._link.command("DEL", lock)

    async def _outbox(self, prefix: str) -> list[bytes]:
        key, last = f"{prefix}outbox", PUBLISHED_AT_ONCE - 1
        packed: list[bytes] = await self._link.command("LRANGE", key, 0, last)
        return packed

    async def _publish(self, prefix: str, packed: Sequence[bytes]) -> None:
        key = self._papers.key
        blocks = [from_outbox(self._shard.crawl, each, key) for each in packed]
        # First of all: what is published must be found by those who clear up.
        await self._link.command("SADD", f"{prefix}routes", *{block.lane for block in blocks})
        await self._carrier.publish(blocks)
        await self._shard.run("published", *(each[:8] for each in packed))

    async def refill(self, lows: Lows) -> int:
        """Fetch blocks for windows that want them. Returns how many have come in."""
        wanted: dict[str, int] = {}
        for low in self._due(lows.windows):
            # What is in a shared lane left before its host had one of its own.
            lane = self._lane(low, is_own=not low.shared)
            wanted[lane] = wanted.get(lane, 0) + low.wanted
        at_once = asyncio.Semaphore(LANES_AT_ONCE)

        async def bring_in(lane: str, count: int) -> int:
            async with at_once:
                return await self._bring_in(lane, count)

        try:
            return sum(await _all(bring_in(lane, count) for lane, count in wanted.items()))
        finally:
            self._customs.tell()

    def _due(self, windows: Sequence[Low]) -> list[Low]:
        """Those whose blocks have not come for long are not asked for all the time: a lane that
        others share would go round and round."""
        now = time.monotonic()
        is_late_due = now >= self._late_at
        if is_late_due:
            self._late_at = now + LATE_EVERY_S
        return [low for low in windows if low.dry_s < LATE_AFTER_S or is_late_due]

    async def renew(self, lane: str, count: int) -> None:
        """Fetch the oldest blocks of a lane, and let them leave again."""
        await self._bring_in(lane, count, leaves=True)

    async def _bring_in(self, lane: str, wanted: int, *, leaves: bool = False) -> int:
        """Fetch blocks of a lane, and let their tasks wait here. Returns how many there were. What
        is of no use is passed over: copies, and what customs do not let in."""
        came = useless = 0
        for _ in range(FETCHES):
            if came >= wanted or len(self.receipts) >= MOST_KEPT:
                break
            is_littered = useless >= LITTERED_FROM
            limit = FETCHED_AT_ONCE if is_littered else min(wanted - came, FETCHED_AT_ONCE)
            deliveries = await self._carrier.fetch(lane, limit)
            if not deliveries:
                break
            more = await self._admit(deliveries, leaves=leaves)
            came, useless = came + more, 0 if more else useless + 1
        return came

    async def acknowledge(self, lows: Lows) -> None:
        """Let go of blocks that the server could not lose any more when it answered."""
        life = lows.life
        safe, unsafe = self.receipts.take_due(life, lows.at)
        try:
            if unsafe:
                await self._admit(unsafe)
            await self._carrier.ack([delivery.receipt for delivery in safe])
        except BaseException:
            self.receipts.put_back(life, safe)
            raise

    async def _admit(self, deliveries: Sequence[Delivery], *, leaves: bool = False) -> int:
        """Returns how many were outside. If it fails they are tried again: what was fetched is ours
        alone, and nobody else gets it as long as the connection lasts."""
        came, left = 0, deliveries
        try:
            ours, others = await self._customs.sort(self._prefix(self._papers.crawl_id), deliveries)
            if ours:
                blocks = [block for _, block in ours]
                life, told = await self._run_admit(blocks, leaves=leaves)
                known = [each for (each, _), known in zip(ours, told, strict=True) if known >= 0]
                others += [each for (each, _), known in zip(ours, told, strict=True) if known < 0]
                self.receipts.keep(life, known)
                came = told.count(1)
            left = others
            if others:
                await self._carrier.ack([delivery.receipt for delivery in others])
        except BaseException:
            self.receipts.put_back("", left)
            raise
        return came

    async def _run_admit(
        self, blocks: Sequence[Travelling], *, leaves: bool
    ) -> tuple[str, list[int]]:
        heads = [
            (block.head.host, block.head.priority, len(block.entries), block.head.crawl_id, leaves)
            for block in blocks
        ]
        entries = [entry for block in blocks for entry in block.entries]
        ids = [block.id for block in blocks]
        _, life, *told = await self._shard.run("admit", pack_values(heads), *ids, *entries)
        return life.decode(), told

    async def note_requests(self, crawl_id: str) -> None:
        """Add what was asked of the carrier since to what the crawl has cost."""
        await self._bill.note(self._prefix(crawl_id))

    async def clear_up(self, crawl_id: str) -> None:
        """Delete all that there is of a crawl that is over."""
        await self._forget_copies(self._prefix(crawl_id))
        await self.drop(await self.lanes(crawl_id))

    async def _forget_copies(self, prefix: str) -> None:
        """Take blocks out of the outbox that have come in: they were published, and fetched before
        that was noted."""
        while packed := await self._outbox(prefix):
            ids = [each[:8] for each in packed]
            outside = await self._link.command("HMGET", f"{prefix}carried", *ids)
            copies = [block for block, where in zip(ids, outside, strict=True) if where is None]
            if not copies or not await self._shard.run("published", *copies):
                return

    async def lanes(self, crawl_id: str) -> set[str]:
        """All lanes of a crawl. A server that was set back may not know of some that are shared."""
        noted = await self._link.command("SMEMBERS", f"{self._prefix(crawl_id)}routes")
        return {lane.decode() for lane in noted} | shared_lanes(self._shard.crawl)

    async def drop(self, lanes: Iterable[str]) -> None:
        """Delete lanes of a crawl that needs none any more."""
        for lane in lanes:
            await self._carrier.drop(lane)

    def _lane(self, low: Low, *, is_own: bool) -> str:
        return lane_of(self._shard.crawl, low.host, low.priority, is_own=is_own)

    def _prefix(self, crawl_id: str) -> str:
        return f"{self._shard.base}{crawl_id}:"


async def _all(calls: Iterable[Awaitable[int]]) -> list[int]:
    """The answers to calls that are made at once. All are waited for before one fails: blocks that
    were fetched must not be forgotten."""
    answers = await asyncio.gather(*calls, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return [answer for answer in answers if isinstance(answer, int)]
