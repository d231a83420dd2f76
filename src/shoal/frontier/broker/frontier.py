"""The frontier whose backlog a carrier keeps. It is the Redis frontier, with a window.

What is next is in Redis, and handed out as ever. What is not leaves in blocks and comes back when a
window is low: see freight.py, and lua/carried.lua of the Redis frontier.
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
from shoal.frontier.broker.bill import Bill
from shoal.frontier.broker.carrier import Carrier, shared_lane
from shoal.frontier.broker.chores import CLEARS_S, FILL_S, LEFT, MOST_OUTBOX, PUBLISH_S, Chores
from shoal.frontier.broker.freight import Freight
from shoal.frontier.broker.missing import LATE_S, Search
from shoal.frontier.broker.papers import Papers
from shoal.frontier.broker.receipts import ACK_AFTER_S, Receipts
from shoal.frontier.broker.repair import Repair
from shoal.frontier.port import Capabilities, Ended
from shoal.frontier.redis.frontier import RedisFrontier
from shoal.frontier.redis.shard import Clock
from shoal.frontier.redis.windows import DRY, Travel, Window
from shoal.frontier.values import (
    Added,
    Ask,
    Control,
    CrawlState,
    Entry,
    Grant,
    Holding,
    Lease,
    Outcome,
    Record,
    Repaired,
    Stats,
    TaskState,
)

OUTSIDE_OR_DONE = "waits with the carrier, or is done"
"""What is known of a task that was seen and is not here, while blocks of its host are outside."""

AT_WORK = (
    "somebody may be at work on crawl '{0}': shoal pause {0}, and wait until nothing is in hand"
)
IN_BLOOM = "known URLs are in a Bloom filter, from which nothing can be taken"
UNREADABLE = "the results are a stream, and cannot say which pages are done"

FULL = "too many blocks of crawl '{}' wait for the broker"

PUBLISHED_FROM = 32
"""Blocks in the outbox: then those who bring work publish them themselves."""


LOOK_EVERY_S = 0.02

log = logging.getLogger("shoal")


class Waits(NamedTuple):
    """How long is waited before something is believed. Tests are shorter-lived."""

    ack_s: float = ACK_AFTER_S
    late_s: float = LATE_S
    fill_s: float = FILL_S
    publish_s: float = PUBLISH_S
    clears_s: float = CLEARS_S
    enough: float = 0.5
    """A grant that has so much of what was asked for does not wait for the rest."""


PATIENT = Waits()


class CarriedFrontier(RedisFrontier):
    """Redis schedules; a carrier has what is not next."""

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
        """`has_moved`: see papers.py."""
        super().__init__(state, clock, Travel(window, carrier.name))
        self._carrier = carrier
        self._has_moved = has_moved
        self._waits = waits
        self._bill = Bill(self._link, carrier)
        self._chores: dict[str, Chores] = {}

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, exact_waits=False, whole_backlog=False)

    async def check(self) -> None:
        await super().check()
        await self._carrier.count(shared_lane("", 0))  # Of no crawl: who is let in is told 0.

    # Bringing work

    async def start(self, crawl: str, rules: Rules, *, again: bool = True) -> Stats:
        await self._papers_of(crawl)
        stats = await super().start(crawl, rules, again=again)
        await self._papers_of(crawl)  # Another may have made it this moment.
        return stats

    async def add(self, crawl: str, entries: Sequence[Entry]) -> Added:
        """Raises StorageBusy, before anything is added, if too much waits for the broker."""
        freight = (await self._chores_of(crawl)).freight
        if freight.outbox >= MOST_OUTBOX:
            await freight.publish((await freight.lows()).crawl_id)
            if (await freight.lows()).outbox >= MOST_OUTBOX:
                raise StorageBusy(FULL.format(crawl))
        added = await super().add(crawl, entries)
        lows = await freight.lows()
        if lows.outbox >= PUBLISHED_FROM:
            with suppress(StorageBusy):  # They are added all the same, and others publish them.
                await freight.publish(lows.crawl_id)
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
        """The grant, and what blocks that are outside add to it; `came` is how many had come before
        it was asked for. What has to be sent at once does not wait for them."""
        chores = self._chores[crawl]
        give_up_at = time.monotonic() + self._waits.fill_s
        dry = grant.shares.pop(DRY, 0)
        enough = ask.room * self._waits.enough
        while dry and _may_want_more(ask, grant) and time.monotonic() < give_up_at:
            if len(grant.leases) >= enough:
                chores.stir()
                break
            await chores.fill(ask.room - len(grant.leases), self._waits.fill_s)
            if chores.came == came and await self._dry_hosts(crawl) >= dry:
                # Another process may have fetched them this moment.
                if grant.leases or chores.is_away:
                    break
                await asyncio.sleep(LOOK_EVERY_S)
                continue
            came = chores.came
            grant = _merged(grant, await super().lease(crawl, _rest(ask, grant)))
            dry = grant.shares.pop(DRY, 0)
        return grant

    async def _dry_hosts(self, crawl: str) -> int:
        prefix = await (await self._crawl(crawl)).home.prefix()
        return int(await self._link.command("ZCARD", f"{prefix}dry"))

    # Looking after a crawl

    async def control(self, crawl: str, action: Control) -> CrawlState:
        await self._papers_of(crawl)
        state = await super().control(crawl, action)
        if state is CrawlState.PAUSED:
            warn_of_pause(self._carrier.kept_s)
        if state is CrawlState.CANCELLED:
            freight = (await self._chores_of(crawl)).freight
            lanes = await freight.lanes((await freight.lows()).crawl_id)
            try:
                await freight.drop(lanes)
            except StorageBusy as error:  # It is cancelled all the same.
                log.warning(LEFT, error)
        return state

    async def forget(self, crawl: str) -> None:
        chores = await self._chores_of(crawl)
        freight = chores.freight
        try:
            lanes = await freight.lanes((await freight.lows()).crawl_id)
        except UnknownCrawl:
            return
        await chores.stop()
        await super().forget(crawl)
        del self._chores[crawl]
        # Last of all: nobody publishes for a crawl that is gone.
        await freight.drop(lanes)

    async def repair(self, crawl: str, ended: Ended | None) -> Repaired:
        freight = (await self._chores_of(crawl)).freight
        stats = await self.stats(crawl)
        if stats.state is CrawlState.RUNNING or stats.leased:
            raise ConfigError(AT_WORK.format(crawl))
        shard = (await self._crawl(crawl)).home
        repair = Repair(self._link, shard, self._carrier, freight)
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

    async def find(self, crawl: str, entry: Entry) -> Record | None:
        record = await super().find(crawl, entry)
        if record is None or record.state is not TaskState.DONE:
            return record
        prefix = await (await self._crawl(crawl)).home.prefix()
        if await self._link.command("HEXISTS", f"{prefix}away", entry.task.site):
            return replace(record, state=TaskState.WAITING, reason=OUTSIDE_OR_DONE)
        return record

    async def close(self) -> None:
        for chores in self._chores.values():
            await chores.end()
        await self._carrier.close()
        await super().close()

    async def _chores_of(self, crawl: str) -> Chores:
        if crawl not in self._chores:
            shard = (await self._crawl(crawl)).home
            receipts = Receipts(self._waits.ack_s)
            papers = await self._papers_of(crawl)
            freight = Freight(self._link, shard, self._carrier, papers, receipts, self._bill)
            search = Search(self._link, shard, self._carrier, self._waits.late_s)
            ageing = Ageing(self._link, shard, freight, self._carrier.kept_s)
            waits = self._waits
            self._chores[crawl] = Chores(freight, search, ageing, waits.publish_s, waits.clears_s)
        return self._chores[crawl]

    async def _papers_of(self, crawl: str) -> Papers:
        """They have been read, if there is such a crawl. Raises ConfigError if its tasks are with
        another carrier."""
        shard = (await self._crawl(crawl)).home
        papers = Papers(self._link, shard, self._carrier, has_moved=self._has_moved)
        with suppress(UnknownCrawl):
            await papers.read()
        return papers


def _asked(ask: Ask, chores: Chores) -> Ask:
    """What is asked for, and nothing while too much waits for the broker."""
    return replace(ask, room=0) if chores.is_stuck else ask


def _may_want_more(ask: Ask, grant: Grant) -> bool:
    if grant.state is not CrawlState.RUNNING or len(grant.leases) >= ask.room:
        return False
    return not any(lease.paced or lease.alone for lease in grant.leases)


def _rest(ask: Ask, grant: Grant) -> Ask:
    """What is still asked for."""
    return replace(
        ask,
        room=ask.room - len(grant.leases),
        slots=ask.slots - sum(lease.lent is not None for lease in grant.leases),
        holdings=_with_granted(ask.holdings, grant),
    )


def _with_granted(holdings: dict[str, Holding], grant: Grant) -> dict[str, Holding]:
    """What a worker has of the hosts that it shares, with all that it was granted just now."""
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
