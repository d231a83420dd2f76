"""Blocks that somebody has thrown away: they are written off, and their tasks are found again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from typing import Any

import pytest

from shoal.errors import ConfigError
from shoal.frontier.broker.blocks import lane_of
from shoal.frontier.broker.frontier import IN_BLOOM, UNREADABLE, CarriedFrontier, Waits
from shoal.frontier.redis import RedisFrontier
from shoal.frontier.redis.windows import Window
from shoal.frontier.values import Control, CrawlState, Entry, Stats, Verdict
from support.carried_audit import carried_faults
from support.frontiers import CRAWL, HOST, Client, entry, outcome, pages
from support.memory_carrier import MemoryCarrier, Store
from support.redis_servers import RedisServer
from support.until import until

SMALL = Window(paced=2, fast=4, block=3)
WAITS = Waits(ack_s=0.05, late_s=0.2, enough=1.0)
LOST, SPARED = "a.example", "b.example"


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
async def client(redis_server: RedisServer, store: Store) -> AsyncIterator[Client]:
    assert lane_of(CRAWL, LOST, 0, is_own=False) != lane_of(CRAWL, SPARED, 0, is_own=False)
    frontier = CarriedFrontier(redis_server.url, MemoryCarrier(store), SMALL, waits=WAITS)
    yield Client(frontier, "worker", CRAWL)
    await frontier.close()


@pytest.fixture
def raw(redis_server: RedisServer) -> Any:
    return redis_server.client()


async def nobody(_: Sequence[bytes]) -> Collection[bytes]:
    """No page is known to have ended."""
    return ()


async def purged(client: Client, store: Store, host: str, blocks: int) -> None:
    """Blocks of a host are with the carrier, and then are not."""
    lane = lane_of(CRAWL, host, 0, is_own=False)
    await client.lease(0)
    await until("its blocks", lambda: len(store.lanes.get(lane, ())) == blocks)
    store.lanes.pop(lane)


async def assert_adds_up(client: Client, raw: Any) -> Stats:
    stats = await client.stats()
    assert stats.added == stats.ended + stats.remaining
    assert carried_faults(raw, CRAWL) == []
    return stats


async def work_off(client: Client) -> set[bytes]:
    """All that there is to do, told by fingerprint; each task once."""
    done = list[bytes]()
    while leases := await client.lease(50):
        done += [lease.fingerprint for lease in leases]
        await client.finish(*map(outcome, leases))
    assert len(done) == len(set(done))
    return set(done)


def fingerprints(entries: Sequence[Entry]) -> set[bytes]:
    return {each.fingerprint for each in entries}


async def test_what_is_lost_is_dropped_and_can_be_found_again(
    client: Client, store: Store, raw: Any
) -> None:
    lost, spared = pages(16, LOST), pages(16, SPARED)
    await client.start(*lost, *spared)
    await purged(client, store, LOST, 4)
    await client.control(Control.PAUSE)
    repaired = await client.frontier.repair(CRAWL, nobody)
    assert (repaired.lost, repaired.why_not) == (12, "")
    stats = await assert_adds_up(client, raw)
    assert (stats.waiting, stats.dropped, stats.missing) == (20, 12, 0)
    await client.control(Control.RESUME)
    added = await client.add(*lost, *spared)
    assert added.added >= 12, "what was lost is new"
    done = await work_off(client)
    assert done == fingerprints([*lost, *spared]), (
        "each task once, blocks that were spared included"
    )
    stats = await assert_adds_up(client, raw)
    assert (stats.added, stats.done, stats.dropped) == (44, 32, 12)


async def test_the_crawl_can_end_without_what_is_lost(
    client: Client, store: Store, raw: Any
) -> None:
    await client.start(*pages(16, LOST))
    await client.control(Control.SEAL)
    await purged(client, store, LOST, 4)
    assert len(await work_off(client)) == SMALL.fast
    await client.control(Control.PAUSE)
    assert (await client.frontier.repair(CRAWL, nobody)).lost == 12
    stats = await assert_adds_up(client, raw)
    assert (stats.state, stats.done, stats.dropped) == (CrawlState.FINISHED, 4, 12)
    assert (await client.add(*pages(16, LOST))).added == 16
    assert (await client.stats()).state is CrawlState.RUNNING
    assert len(await work_off(client)) == 16


async def test_the_tail_behind_lost_blocks_is_next(client: Client, store: Store, raw: Any) -> None:
    tasks = pages(4 + 3 + 2, LOST)
    await client.start(*tasks)
    await purged(client, store, LOST, 1)
    await client.control(Control.PAUSE)
    assert (await client.frontier.repair(CRAWL, nobody)).lost == 3
    await client.control(Control.RESUME)
    assert await work_off(client) == fingerprints([*tasks[:4], *tasks[7:]])
    await assert_adds_up(client, raw)


async def test_what_has_ended_or_is_here_stays_known(client: Client, store: Store) -> None:
    tasks = pages(16, LOST)
    await client.start(*tasks)
    done, dead, later, dropped = await client.lease(4)
    await client.finish(
        outcome(done),
        outcome(dead, Verdict.DEAD, reason="no"),
        outcome(later, Verdict.RETRY, retry_in_s=3600.0),
        outcome(dropped, Verdict.DROPPED, reason="no"),
    )
    chain = [entry(f"{HOST}/{n}", chain="c") for n in range(3)]
    await client.add(*chain)
    await until("a window that is filled", lambda: _waits(client))
    lane = store.lanes.pop(lane_of(CRAWL, LOST, 0, is_own=False))
    await client.control(Control.PAUSE)

    async def ended(asked: Sequence[bytes]) -> Collection[bytes]:
        return {done.fingerprint} & set(asked)

    lost = {each[:8] for block in lane for each in block.entries[1:]}
    repaired = await client.frontier.repair(CRAWL, ended)
    assert repaired.lost == repaired.forgotten == 3 * len(lane) > len(lost) > 0
    await client.control(Control.RESUME)
    added = await client.add(*tasks, *chain)
    assert added.added == repaired.lost


async def _waits(client: Client) -> bool:
    leases = await client.lease(1)
    await client.finish(*(outcome(lease, Verdict.RETURNED) for lease in leases))
    return bool(leases)


async def test_nobody_may_be_at_work(client: Client, store: Store) -> None:
    await client.start(*pages(16, LOST))
    with pytest.raises(ConfigError, match="shoal pause"):
        await client.frontier.repair(CRAWL, nobody)
    await client.lease(1)
    await client.control(Control.PAUSE)
    with pytest.raises(ConfigError, match="until nothing is in hand"):
        await client.frontier.repair(CRAWL, nobody)


async def test_nothing_is_forgotten_where_nothing_is_missing(client: Client, store: Store) -> None:
    await client.start(*pages(16, LOST))
    await client.control(Control.PAUSE)
    repaired = await client.frontier.repair(CRAWL, nobody)
    assert (repaired.lost, repaired.forgotten, repaired.why_not) == (0, 0, "")
    await client.control(Control.RESUME)
    assert (await client.add(*pages(16, LOST))).added == 0
    assert len(await work_off(client)) == 16


async def test_it_says_if_nothing_can_be_found_again(
    client: Client, store: Store, raw: Any
) -> None:
    await client.start(*pages(16, LOST))
    await purged(client, store, LOST, 4)
    await client.control(Control.PAUSE)
    assert (await client.frontier.repair(CRAWL, None)).why_not == UNREADABLE
    assert (await assert_adds_up(client, raw)).dropped == 12


async def test_nor_from_a_bloom_filter(client: Client, store: Store, raw: Any) -> None:
    await client.start(*pages(16, LOST), seen="bloom")
    await purged(client, store, LOST, 4)
    await client.control(Control.PAUSE)
    repaired = await client.frontier.repair(CRAWL, nobody)
    assert (repaired.lost, repaired.forgotten, repaired.why_not) == (12, 0, IN_BLOOM)
    await assert_adds_up(client, raw)


async def test_there_is_nothing_to_repair_without_a_carrier(redis_server: RedisServer) -> None:
    plain = RedisFrontier(redis_server.url)
    with pytest.raises(ConfigError, match="nothing to repair"):
        await plain.repair(CRAWL, nobody)
    await plain.close()
