"""The frontier with a carrier: the Redis frontier, with only a window of each queue in Redis.

The next tasks of each host and priority are in Redis and are leased as usual. The others are sent
out in blocks and come back when a window is low: see block_mover.py, and lua/carried.lua of the
Redis frontier.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from msgspec.structs import replace

from shoal.config import Rules
from shoal.errors import ConfigError, StorageBusy, UnknownCrawl
from shoal.frontier.broker.ageing import Ageing, warn_of_pause
from shoal.frontier.broker.block_mover import BlockMover
from shoal.frontier.broker.carrier import Carrier, shared_lane
from shoal.frontier.broker.carrier_record import CarrierRecord
from shoal.frontier.broker.chores import CLEARS_S, FILL_S, LEFT, MOST_OUTBOX, PUBLISH_S, Chores
from shoal.frontier.broker.missing import LATE_S, MissingSearch
from shoal.frontier.broker.receipts import ACK_AFTER_S, Receipts
from shoal.frontier.broker.repair import Repair
from shoal.frontier.broker.request_counter import RequestCounter
from shoal.frontier.facts import DROPPED_BY_CANCEL
from shoal.frontier.port import Capabilities, Ended
from shoal.frontier.redis.frontier import RedisFrontier
from shoal.frontier.redis.shard import Clock
from shoal.frontier.redis.stats import HOSTS_AT_ONCE
from shoal.frontier.redis.windows import DRY, CarrierSetup, Window
from shoal.frontier.values import (
    Added,
    Ask,
    Control,
    CrawlState,
    Entry,
    Grant,
    Holding,
    Host,
    HostOrder,
    Lease,
    Outcome,
    Record,
    Repaired,
    Stats,
    TaskState,
)

OUTSIDE_OR_DONE = "waits with the carrier, or is done"
"""The state of a task that was seen and is not in Redis, while blocks of its host are outside."""
CANCELLED_OR_DONE = f"{DROPPED_BY_CANCEL}, unless it was done before"
"""The same in a crawl that was cancelled: the state is that of a dropped task."""

AT_WORK = (
    "somebody may be at work on crawl '{0}': shoal pause {0}, and wait until nothing is in hand"
)
IN_BLOOM = "known URLs are in a Bloom filter, from which nothing can be taken"
UNREADABLE = "the results are a stream, and cannot say which pages are done"

FULL = "too many blocks of crawl '{}' wait for the broker"

PUBLISHED_FROM = 32
"""If the outbox has this many blocks, a process that adds tasks publishes them itself."""

LOOK_EVERY_S = 0.02

log = logging.getLogger("shoal")


class Waits(NamedTuple):
    """The waits of a frontier with a carrier. Tests use shorter ones."""

    ack_s: float = ACK_AFTER_S
    late_s: float = LATE_S
    fill_s: float = FILL_S
    publish_s: float = PUBLISH_S
    clears_s: float = CLEARS_S
    enough: float = 0.5
    """The fraction of the leases asked for with which a grant does not wait for the rest."""


PATIENT = Waits()


class CarriedFrontier(RedisFrontier):
    """The frontier port on Redis, with a carrier that keeps all but the next tasks."""

    def __init__(
        self,
        state: str,
        carrier: Carrier,
        window: Window,
        clock: Clock | None = None,
        waits: Waits = PATIENT,
        *,
        has_moved: bool = False,
    ) -> None:
        """`has_moved`: another carrier that the crawl's record names is the former address of this
        one."""
        super().__init__(state, clock, CarrierSetup(window, carrier.name))
        self._carrier = carrier
        self._has_moved = has_moved
        self._waits = waits
        self._request_counter = RequestCounter(self._link, carrier)
        self._chores: dict[str, Chores] = {}

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, exact_waits=False, whole_backlog=False)

    async def check(self) -> None:
        await super().check()
        # A lane that does not exist: without access this raises, otherwise it returns 0.
        await self._carrier.count(shared_lane("", 0))

    # Bringing work

    async def start(self, crawl: str, rules: Rules, *, again: bool = True) -> Stats:
        await self._carrier_record_of(crawl)
        stats = await super().start(crawl, rules, again=again)
        await self._carrier_record_of(crawl)  # Another process may just have created the crawl.
        return stats

    async def add(self, crawl: str, entries: Sequence[Entry]) -> Added:
        """Raises StorageBusy, before anything is added, if too much waits for the broker."""
        mover = (await self._chores_of(crawl)).mover
        if mover.outbox >= MOST_OUTBOX:
            await mover.publish((await mover.backlog()).crawl_id)
            if (await mover.backlog()).outbox >= MOST_OUTBOX:
                raise StorageBusy(FULL.format(crawl))
        added = await super().add(crawl, entries)
        backlog = await mover.backlog()
        if backlog.outbox >= PUBLISHED_FROM:
            with suppress(StorageBusy):  # They are added all the same; workers publish them later.
                await mover.publish(backlog.crawl_id)
        return added

    # Working

    async def lease(self, crawl: str, ask: Ask) -> Grant:
        chores = await self._chores_of(crawl)
        chores.begin()
        ask, came = _asked(ask, chores), chores.came
        return await self._filled(crawl, ask, await super().lease(crawl, ask), came)

    async def exchange(
        self, crawl: str, outcomes: Sequence[Outcome], ask: Ask
    ) -> tuple[list[Lease], Grant]:
        chores = await self._chores_of(crawl)
        chores.begin()
        ask, came = _asked(ask, chores), chores.came
        stale, grant = await super().exchange(crawl, outcomes, ask)
        return stale, await self._filled(crawl, ask, grant, came)

    async def _filled(self, crawl: str, ask: Ask, grant: Grant, came: int) -> Grant:
        """Wait a moment for blocks from outside if the grant has too few leases, and add leases
        from them. `came` is how many blocks had come back before the grant was asked for. A grant
        with leases that must be sent at once does not wait, and hosts that have tasks do not wait
        for those that have none."""
        chores = self._chores[crawl]
        give_up_at = time.monotonic() + self._waits.fill_s
        dry, turn_at = grant.shares.pop(DRY, 0), _next_turn(grant)
        enough = ask.room * self._waits.enough
        while dry and _may_want_more(ask, grant) and (now := time.monotonic()) < give_up_at:
            if len(grant.leases) >= enough:
                chores.wake()
                break
            within_s = self._waits.fill_s if grant.leases else max(turn_at - now, 0.0)
            await chores.fill(ask.room - len(grant.leases), within_s)
            if chores.came == came and await self._dry_hosts(crawl) >= dry:
                if grant.leases or chores.is_away:
                    break
                if time.monotonic() < turn_at:
                    # No block came. Another process may just have fetched them, so look once more.
                    await asyncio.sleep(LOOK_EVERY_S)
                    continue
            came = chores.came
            grant = _merged(grant, await super().lease(crawl, _rest(ask, grant)))
            dry, turn_at = grant.shares.pop(DRY, 0), _next_turn(grant)
        return grant

    async def _dry_hosts(self, crawl: str) -> int:
        prefix = await (await self._crawl(crawl)).home.prefix()
        return int(await self._link.command("ZCARD", f"{prefix}dry"))

    # Looking after a crawl

    async def control(self, crawl: str, action: Control) -> CrawlState:
        await self._carrier_record_of(crawl)
        state = await super().control(crawl, action)
        if state is CrawlState.PAUSED:
            warn_of_pause(self._carrier.kept_s)
        if state is CrawlState.CANCELLED:
            mover = (await self._chores_of(crawl)).mover
            lanes = await mover.lanes((await mover.backlog()).crawl_id)
            try:
                await mover.drop(lanes)
            except StorageBusy as error:  # It is cancelled all the same.
                log.warning(LEFT, error)
        return state

    async def forget(self, crawl: str) -> None:
        chores = await self._chores_of(crawl)
        mover = chores.mover
        try:
            lanes = await mover.lanes((await mover.backlog()).crawl_id)
        except UnknownCrawl:
            return
        await chores.stop()
        await super().forget(crawl)
        del self._chores[crawl]
        # Last, because nobody publishes for a crawl that is gone.
        await mover.drop(lanes)

    async def repair(self, crawl: str, ended: Ended | None) -> Repaired:
        mover = (await self._chores_of(crawl)).mover
        stats = await self.stats(crawl)
        if stats.state is CrawlState.RUNNING or stats.leased:
            raise ConfigError(AT_WORK.format(crawl))
        shard = (await self._crawl(crawl)).home
        repair = Repair(self._link, shard, self._carrier, mover)
        lost = await repair.write_off(self._waits.ack_s)
        why_not = IN_BLOOM if stats.bloom else UNREADABLE if ended is None else ""
        if not lost or why_not or ended is None:
            return Repaired(lost, 0, why_not if lost else "")
        return Repaired(lost, await repair.forget_seen(ended))

    # Asking

    async def stats(self, crawl: str) -> Stats:
        stats = await super().stats(crawl)
        prefix = await (await self._crawl(crawl)).home.prefix()
        told = (("HLEN", "carried"), ("GET", "missing"), ("GET", "requests"), ("GET", "foreign"))
        asked = ((command, f"{prefix}{name}") for command, name in told)
        outside, missing, requests, foreign = await self._link.together(*asked)
        stats.foreign = int(foreign or 0)
        stats.broker_requests = int(requests or 0)
        stats.broker_cost = stats.broker_requests * self._carrier.request_price
        if not stats.state.over:
            stats.outside, stats.missing = outside, int(missing or 0)
        return stats

    async def hosts(
        self, crawl: str, limit: int, order: HostOrder = HostOrder.BUSIEST
    ) -> list[Host]:
        hosts = await super().hosts(crawl, limit, order)
        if hosts:
            shard = (await self._crawl(crawl)).home
            now = int((await shard.counts())["now"])
            dry, names = f"{await shard.prefix()}dry", [host.host for host in hosts]
            moments = list[str | None]()
            for first in range(0, len(names), HOSTS_AT_ONCE):
                part = names[first : first + HOSTS_AT_ONCE]
                moments += await self._link.command("ZMSCORE", dry, *part)
            for host, moment in zip(hosts, moments, strict=True):
                host.dry_s = 0.0 if moment is None else max(now - float(moment), 0.0) / 1e6
        return hosts

    async def find(self, crawl: str, entry: Entry) -> Record | None:
        record = await super().find(crawl, entry)
        if record is None or record.state is not TaskState.DONE:
            return record
        shard = (await self._crawl(crawl)).home
        away = f"{await shard.prefix()}away"
        if not await self._link.command("HEXISTS", away, entry.task.site):
            return record
        if (await shard.counts())["state"] == CrawlState.CANCELLED:
            return replace(record, state=TaskState.DROPPED, reason=CANCELLED_OR_DONE)
        return replace(record, state=TaskState.WAITING, reason=OUTSIDE_OR_DONE)

    async def close(self) -> None:
        for chores in self._chores.values():
            await chores.end()
        await self._carrier.close()
        await super().close()

    async def _chores_of(self, crawl: str) -> Chores:
        if crawl not in self._chores:
            shard = (await self._crawl(crawl)).home
            receipts = Receipts(self._waits.ack_s)
            record = await self._carrier_record_of(crawl)
            mover = BlockMover(
                self._link, shard, self._carrier, record, receipts, self._request_counter
            )
            search = MissingSearch(self._link, shard, self._carrier, self._waits.late_s)
            ageing = Ageing(self._link, shard, mover, self._carrier.kept_s)
            waits = self._waits
            self._chores[crawl] = Chores(mover, search, ageing, waits.publish_s, waits.clears_s)
        return self._chores[crawl]

    async def _carrier_record_of(self, crawl: str) -> CarrierRecord:
        """The crawl's carrier record, which is read if there is such a crawl. Raises ConfigError if
        its tasks are with another carrier."""
        shard = (await self._crawl(crawl)).home
        record = CarrierRecord(self._link, shard, self._carrier, has_moved=self._has_moved)
        with suppress(UnknownCrawl):
            await record.read()
        return record


def _asked(ask: Ask, chores: Chores) -> Ask:
    """The request as it is, or with room for nothing while too much waits for the broker."""
    return replace(ask, room=0) if chores.is_stuck else ask


def _may_want_more(ask: Ask, grant: Grant) -> bool:
    if grant.state is not CrawlState.RUNNING or len(grant.leases) >= ask.room:
        return False
    return not any(lease.paced or lease.alone for lease in grant.leases)


def _next_turn(grant: Grant) -> float:
    """The moment at which to ask again, by time.monotonic(): it may be the turn of a host that does
    not wait for blocks."""
    return time.monotonic() + max(grant.wait_s or 0.0, LOOK_EVERY_S)


def _rest(ask: Ask, grant: Grant) -> Ask:
    """The request for what the grant does not have yet."""
    return replace(
        ask,
        room=ask.room - len(grant.leases),
        slots=ask.slots - sum(lease.lent is not None for lease in grant.leases),
        holdings=_with_granted(ask.holdings, grant),
    )


def _with_granted(holdings: dict[str, Holding], grant: Grant) -> dict[str, Holding]:
    """What a worker holds of the hosts that it shares, including what the grant adds."""
    more = Counter(lease.task.site for lease in grant.leases if lease.shared)
    none = Holding(in_flight=0, unsent=0)
    had = {site: holdings.get(site, none) for site in {**holdings, **grant.shares}}
    return {site: Holding(at.in_flight, at.unsent + more[site]) for site, at in had.items()}


def _merged(first: Grant, second: Grant) -> Grant:
    return replace(
        second,
        leases=[*first.leases, *second.leases],
        shares=first.shares | second.shares,
        decided=min(first.decided, second.decided),
    )
