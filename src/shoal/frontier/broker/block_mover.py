"""Moves the blocks of one crawl from Redis to the carrier and back.

    outbox ─ publish, confirmed ─▶ carrier ─ fetch ─▶ admit ─ 5 s, the same server ─▶ acknowledged
              then cleared

A process may die after any step; another one makes the next. A block that is published and not
cleared is published twice. A block that is admitted and not acknowledged is delivered twice: the
second time its id is unknown, and all of its tasks were seen, so nothing is added.
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
from shoal.frontier.broker.backlog import Backlog, LowWindow, read_backlog
from shoal.frontier.broker.block_check import BlockCheck
from shoal.frontier.broker.blocks import ReturnedBlock, from_outbox, lane_of, shared_lanes
from shoal.frontier.broker.carrier import Carrier, Delivery, shared_lane
from shoal.frontier.broker.carrier_record import CarrierRecord
from shoal.frontier.broker.receipts import Receipts
from shoal.frontier.broker.request_counter import RequestCounter
from shoal.frontier.redis.forms import pack_values
from shoal.frontier.redis.shard import Shard

PUBLISHED_AT_ONCE = 256
"""Blocks, some 3 MB. The wait of two seconds for new queues is made once for all of them."""
WINDOWS_AT_ONCE = 200
FETCHED_AT_ONCE = 32
"""Blocks in one fetch. They stay in memory until they are acknowledged."""
FETCHES = 100
"""The number of fetches from one lane before other lanes have their turn. A lane full of useless
messages must not hold up the others."""
LITTERED_FROM = 32
"""After this many fetches without a useful block, fetches are as large as possible, to clear the
useless messages out of the lane."""
MOST_KEPT = 4096
"""Blocks that one process may have fetched and not acknowledged."""
LANES_AT_ONCE = 8
"""Lanes that are fetched from in parallel: a fetch may take long, on SQS above all from an empty
lane."""
LATE_AFTER_S = 20.0
LATE_EVERY_S = 5.0
"""Windows that have been empty for `LATE_AFTER_S` are refilled only every `LATE_EVERY_S`."""
LOCK_MS = 10_000
"""How long others wait for a process that died while it published. If a lock ends too early,
blocks are published twice, which does no harm."""

log = logging.getLogger("shoal")


class BlockMover:
    """Moves the blocks of one crawl. Publishing and fetching may run at the same time: to create
    queues takes seconds, and fetching must not wait for that."""

    def __init__(
        self,
        link: RedisLink,
        shard: Shard,
        carrier: Carrier,
        record: CarrierRecord,
        receipts: Receipts,
        request_counter: RequestCounter,
    ) -> None:
        self._link = link
        self._shard = shard
        self._carrier = carrier
        self._record = record
        self._block_check = BlockCheck(link, shard.crawl, record)
        self._request_counter = request_counter
        self.receipts = receipts
        self.outbox = 0
        """How many blocks were not published yet at the last look."""
        self._late_at = 0.0

    async def backlog(self, more: int = 0) -> Backlog:
        """The crawl's state and the windows that need blocks. Empty windows get `more` tasks beyond
        those that fill them. Raises ConfigError if the crawl's tasks are with another carrier."""
        at = self.receipts.now
        answer = await self._shard.run("lows", WINDOWS_AT_ONCE, more)
        backlog = read_backlog(at, answer)
        self.outbox = backlog.outbox
        await self._record.ensure_current(backlog.crawl_id)
        return backlog

    async def check_carrier(self) -> None:
        """Ask the carrier something. Raises StorageBusy if it does not answer."""
        await self._carrier.count(shared_lane(self._shard.crawl, 0))

    async def publish(self, crawl_id: str) -> bool:
        """Publish all blocks in the outbox. False: another process is doing so."""
        prefix = self._prefix(crawl_id)
        lock, token = f"{prefix}publishing", secrets.token_hex(8)
        try:
            if not await self._link.command("SET", lock, token, "NX", "PX", LOCK_MS):
                return False
            await self._record.read()
            while packed := await self._outbox(prefix):
                await self._publish(prefix, packed)
                await self._request_counter.note(prefix)
                await self._link.command("PEXPIRE", lock, LOCK_MS)
            return True
        finally:
            with suppress(StorageError):  # The lock expires anyway.
                if await self._link.command("GET", lock) == token.encode():
                    await self._link.command("DEL", lock)

    async def _outbox(self, prefix: str) -> list[bytes]:
        key, last = f"{prefix}outbox", PUBLISHED_AT_ONCE - 1
        packed: list[bytes] = await self._link.command("LRANGE", key, 0, last)
        return packed

    async def _publish(self, prefix: str, packed: Sequence[bytes]) -> None:
        key = self._record.key
        blocks = [from_outbox(self._shard.crawl, each, key) for each in packed]
        # Before publishing: `clear_up` must find every lane that has blocks.
        await self._link.command("SADD", f"{prefix}routes", *{block.lane for block in blocks})
        await self._carrier.publish(blocks)
        await self._shard.run("published", *(each[:8] for each in packed))

    async def refill(self, backlog: Backlog) -> int:
        """Fetch blocks for windows that need them. Returns how many useful ones came."""
        wanted: dict[str, int] = {}
        for window in self._due(backlog.windows):
            # Blocks in the shared lane were sent out before the window got a lane of its own.
            lane = self._lane(window, is_own=not window.shared)
            wanted[lane] = wanted.get(lane, 0) + window.wanted
        at_once = asyncio.Semaphore(LANES_AT_ONCE)

        async def bring_in(lane: str, count: int) -> int:
            async with at_once:
                return await self._bring_in(lane, count)

        try:
            return sum(await _all(bring_in(lane, count) for lane, count in wanted.items()))
        finally:
            self._block_check.log_earlier()

    def _due(self, windows: Sequence[LowWindow]) -> list[LowWindow]:
        """The windows to refill now. Those whose blocks are late are left out most of the time:
        each fetch from a shared lane sends unwanted blocks of other windows back to it, so the
        whole lane would go round and round."""
        now = time.monotonic()
        is_late_due = now >= self._late_at
        if is_late_due:
            self._late_at = now + LATE_EVERY_S
        return [window for window in windows if window.dry_s < LATE_AFTER_S or is_late_due]

    async def renew(self, lane: str, count: int) -> None:
        """Fetch the oldest blocks of a lane, and send their tasks out again in new blocks."""
        await self._bring_in(lane, count, leaves=True)

    async def _bring_in(self, lane: str, wanted: int, *, leaves: bool = False) -> int:
        """Fetch blocks of a lane and admit them, until `wanted` useful ones came. Returns how many
        did. Copies and rejected messages do not count. With `leaves`, the tasks are sent out
        again."""
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

    async def acknowledge(self, backlog: Backlog) -> None:
        """Acknowledge the blocks that were safe on Redis when it gave this answer. Blocks that were
        admitted before a restart of Redis are admitted again."""
        life = backlog.life
        safe, unsafe = self.receipts.take_due(life, backlog.at)
        try:
            if unsafe:
                await self._admit(unsafe)
            await self._carrier.ack([delivery.receipt for delivery in safe])
        except BaseException:
            self.receipts.put_back(life, safe)
            raise

    async def _admit(self, deliveries: Sequence[Delivery], *, leaves: bool = False) -> int:
        """Admit blocks. Returns how many of them Redis knew to be outside.

        On failure they are kept and tried again later: no other process gets what was fetched as
        long as this connection lasts.
        """
        came, left = 0, deliveries
        try:
            ours, others = await self._block_check.sort(
                self._prefix(self._record.crawl_id), deliveries
            )
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
        self, blocks: Sequence[ReturnedBlock], *, leaves: bool
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
        """Add the requests to the carrier since the last call to the crawl's counter."""
        await self._request_counter.note(self._prefix(crawl_id))

    async def clear_up(self, crawl_id: str) -> None:
        """Delete all that the carrier has of a crawl that is over."""
        await self._forget_copies(self._prefix(crawl_id))
        await self.drop(await self.lanes(crawl_id))

    async def _forget_copies(self, prefix: str) -> None:
        """Remove blocks from the outbox that have come back already: they were published, and
        fetched before the outbox was cleared."""
        while packed := await self._outbox(prefix):
            ids = [each[:8] for each in packed]
            outside = await self._link.command("HMGET", f"{prefix}carried", *ids)
            copies = [block for block, where in zip(ids, outside, strict=True) if where is None]
            if not copies or not await self._shard.run("published", *copies):
                return

    async def lanes(self, crawl_id: str) -> set[str]:
        """The names of all lanes of a crawl. A Redis server that lost its last moments may not
        know of some shared lanes, so those are always included."""
        noted = await self._link.command("SMEMBERS", f"{self._prefix(crawl_id)}routes")
        return {lane.decode() for lane in noted} | shared_lanes(self._shard.crawl)

    async def drop(self, lanes: Iterable[str]) -> None:
        """Delete lanes that the crawl no longer needs."""
        for lane in lanes:
            await self._carrier.drop(lane)

    def _lane(self, window: LowWindow, *, is_own: bool) -> str:
        return lane_of(self._shard.crawl, window.host, window.priority, is_own=is_own)

    def _prefix(self, crawl_id: str) -> str:
        return f"{self._shard.base}{crawl_id}:"


async def _all(calls: Iterable[Awaitable[int]]) -> list[int]:
    """Make calls in parallel and return their answers. Waits for all of them before it raises the
    error of one: blocks that the others fetched must not be forgotten."""
    answers = await asyncio.gather(*calls, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return [answer for answer in answers if isinstance(answer, int)]
