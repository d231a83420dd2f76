"""Tasks that travel: windows, lanes, what stays home, what is missing, and what others may do."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from shoal.core.task import Task
from shoal.errors import ConfigError, StorageBusy
from shoal.frontier import open_frontier
from shoal.frontier.admission import Admission
from shoal.frontier.broker import chores as of_chores
from shoal.frontier.broker import frontier as of_frontier
from shoal.frontier.broker.blocks import SEAL_BYTES, lane_of, read_block
from shoal.frontier.broker.carrier import Block, host_lane
from shoal.frontier.broker.frontier import (
    CANCELLED_OR_DONE,
    OUTSIDE_OR_DONE,
    CarriedFrontier,
    Waits,
)
from shoal.frontier.port import Frontier
from shoal.frontier.redis import RedisFrontier
from shoal.frontier.redis.packing import pack
from shoal.frontier.redis.shard import Shard
from shoal.frontier.redis.windows import DEEP, MOST_OWN, OWN_FROM, Window
from shoal.frontier.values import Ask, Control, CrawlState, HostOrder, TaskState, Verdict
from support.carried_audit import carried_faults
from support.frontiers import CRAWL, HOST, Client, FakeClock, entry, open_rules, outcome, pages
from support.memory_carrier import MemoryCarrier, Store
from support.redis_servers import RedisServer
from support.until import LIMIT_S, in_time, until

SMALL = Window(paced=2, fast=4, block=3)
SHARED = lane_of(CRAWL, HOST, 0, is_own=False)
OWN = host_lane(CRAWL, HOST, 0)
FORGED = 700
"""More than is fetched in one go."""


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
async def client(redis_server: RedisServer, store: Store) -> AsyncIterator[Client]:
    waits = Waits(ack_s=0.05, late_s=0.2, enough=1.0)
    frontier = CarriedFrontier(redis_server.url, MemoryCarrier(store), SMALL, waits=waits)
    yield Client(frontier, "worker", CRAWL)
    store.is_away = False
    await frontier.close()


@pytest.fixture
def raw(redis_server: RedisServer) -> Any:
    return redis_server.client()


async def key_of(client: Client, name: str) -> str:
    return f"{await (await frontier_home(client.frontier)).prefix()}{name}"


async def frontier_home(frontier: Frontier) -> Shard:
    assert isinstance(frontier, CarriedFrontier)
    return (await frontier._crawl(CRAWL)).home


async def published(client: Client, store: Store, blocks: int) -> None:
    await client.lease(0)
    await until(f"{blocks} blocks with the carrier", lambda: len(store.blocks) == blocks)


async def nothing(client: Client) -> bool:
    return not await client.lease(1)


class TestWindow:
    async def test_has_what_is_next_and_the_tail_is_less_than_a_block(
        self, client: Client, store: Store, raw: Any
    ) -> None:
        await client.start(*pages(12))
        assert raw.llen(await key_of(client, f"q:0:{HOST}")) == SMALL.fast
        assert raw.llen(await key_of(client, f"t:0:{HOST}")) == 2
        assert raw.llen(await key_of(client, "outbox")) == 2
        await published(client, store, 2)
        stats = await client.stats()
        assert (stats.waiting, stats.outside, stats.missing) == (12, 2, 0)
        assert (await client.host()).waiting == 12

    async def test_is_smaller_where_the_host_has_a_rate(self, client: Client, raw: Any) -> None:
        await client.start(*pages(12), rate="1/s")
        assert raw.llen(await key_of(client, f"q:0:{HOST}")) == SMALL.paced

    async def test_keeps_what_comes_in_order(self, client: Client, store: Store, raw: Any) -> None:
        await client.start(*pages(40))
        paths = []
        while leases := await client.lease(2):
            paths += [int(lease.task.url.rpartition("/")[2]) for lease in leases]
            await client.finish(*map(outcome, leases))
            assert carried_faults(raw, CRAWL) == []
        assert paths == list(range(40))
        assert raw.exists(await key_of(client, "away"), await key_of(client, "carried")) == 0

    async def test_what_is_too_large_for_a_block_stays(
        self, redis_server: RedisServer, store: Store, raw: Any
    ) -> None:
        window = Window(paced=1, fast=1, block=3, block_bytes=2000)
        frontier = CarriedFrontier(redis_server.url, MemoryCarrier(store), window)
        client, admit = Client(frontier, "worker", CRAWL), Admission(open_rules()).admit
        sizes = [10, 900, 900, 900, 5000, 10, 900]
        tasks = [
            Task(url=f"http://{HOST}/{n}", method="POST", body="x" * size)
            for n, size in enumerate(sizes)
        ]
        await client.start(*map(admit, tasks))
        assert raw.llen(await key_of(client, f"q:0:{HOST}")) == 2
        await published(client, store, 2)
        assert all(sum(map(len, block.entries)) < 2100 for block in store.blocks)
        assert await client.work_off() == len(sizes)
        await frontier.close()

    async def test_a_higher_priority_comes_first_even_if_it_is_outside(
        self, client: Client, store: Store
    ) -> None:
        await client.start(*pages(7, priority=5), entry(f"{HOST}/low"))
        await published(client, store, 1)
        store.is_away = True
        assert len(await client.lease(9)) == SMALL.fast
        grant = await client.ask(9)
        assert grant.leases == []
        assert grant.wait_s is not None
        store.is_away = False
        (lease,) = await until("a block that comes", lambda: client.lease(1))
        assert lease.task.priority == 5

    async def test_a_suspect_waits_for_what_is_on_its_way(
        self, redis_server: RedisServer, store: Store
    ) -> None:
        clock = FakeClock()
        frontier = CarriedFrontier(redis_server.url, MemoryCarrier(store), SMALL, clock)
        client = Client(frontier, "worker", CRAWL)
        await client.start(entry("b.example/poison"), lease_s=9.0, max_losses=9)
        for _ in range(2):
            await client.lease_one()
            clock.now += 10
        await client.add(*pages(7))
        await published(client, store, 1)
        store.is_away = True
        assert len(await client.lease(9)) == SMALL.fast
        worker = Client(frontier, "another", CRAWL)
        assert await worker.lease(9) == [], "there is something else to do"
        clock.now += 6
        (lease,) = await worker.lease(9)
        assert lease.alone
        store.is_away = False
        await frontier.close()


class TestLanes:
    async def test_a_host_that_outgrows_a_shared_lane_gets_its_own(
        self, client: Client, store: Store, raw: Any
    ) -> None:
        blocks = OWN_FROM + 3
        await client.start(*pages(SMALL.fast + SMALL.block * blocks))
        await published(client, store, blocks)
        assert {lane: len(waiting) for lane, waiting in store.lanes.items()} == {
            SHARED: OWN_FROM,
            OWN: 3,
        }
        assert await client.work_off() == SMALL.fast + SMALL.block * blocks
        assert carried_faults(raw, CRAWL) == []

    async def test_there_are_not_more_of_them_than_a_broker_bears(
        self, client: Client, store: Store, raw: Any
    ) -> None:
        await client.start()
        raw.sadd(await key_of(client, "own"), *(f"0:h{n}.example" for n in range(MOST_OWN)))
        await client.add(*pages(SMALL.fast + SMALL.block * (OWN_FROM + 3)))
        await published(client, store, OWN_FROM + 3)
        assert set(store.lanes) == {SHARED}

    async def test_what_nobody_wants_of_a_shared_lane_goes_round_again(
        self, client: Client, store: Store, raw: Any
    ) -> None:
        """Here many hosts share one lane."""
        other = next(
            host
            for n in range(10_000)
            if lane_of(CRAWL, host := f"h{n}.example", 0, is_own=False) == SHARED
        )
        await client.start()
        raw.sadd(await key_of(client, "own"), *(f"0:h{n}.none" for n in range(MOST_OWN)))
        await client.add(*pages(200, other))
        await client.add(*pages(100))
        count = deepest = 0
        while leases := await client.lease(20):
            # The other host is slow: its tasks are given back.
            fast = [lease for lease in leases if lease.task.site == HOST]
            slow = [lease for lease in leases if lease.task.site == other]
            verdict = Verdict.RETURNED if fast else Verdict.DONE
            await client.finish(*map(outcome, fast), *(outcome(one, verdict) for one in slow))
            count += len(fast) + (0 if fast else len(slow))
            assert carried_faults(raw, CRAWL) == []
            deepest = max(deepest, raw.llen(await key_of(client, f"q:0:{other}")))
        assert count == 300
        assert deepest <= SMALL.fast + (DEEP + 2) * SMALL.block

    async def test_are_gone_with_the_crawl(self, client: Client, store: Store) -> None:
        await client.start(*pages(60))
        await published(client, store, 18)
        await client.control(Control.CANCEL)
        assert store.lanes == {}
        assert (await client.stats()).dropped == 60
        await client.frontier.forget(CRAWL)

    async def test_a_crawl_is_cancelled_whether_they_can_be_deleted_or_not(
        self, client: Client, store: Store, caplog: pytest.LogCaptureFixture
    ) -> None:
        await client.start(*pages(60))
        await published(client, store, 18)
        store.is_away = True
        assert await client.control(Control.CANCEL) is CrawlState.CANCELLED
        assert "the same command again deletes them" in caplog.text
        store.is_away = False
        await client.control(Control.CANCEL)
        assert store.lanes == {}

    async def test_are_gone_when_it_is_forgotten(
        self, client: Client, store: Store, raw: Any
    ) -> None:
        await client.start(*pages(60))
        await published(client, store, 18)
        await client.frontier.forget(CRAWL)
        assert store.lanes == {}
        left = {key.rpartition(b":")[2] for key in raw.scan_iter()}
        assert left <= {b"forgotten", b"restarts"}

    async def test_are_gone_when_it_is_over(self, redis_server: RedisServer, store: Store) -> None:
        frontier = CarriedFrontier(
            redis_server.url, MemoryCarrier(store), SMALL, waits=Waits(ack_s=0.3, enough=1.0)
        )
        client = Client(frontier, "worker", CRAWL)
        await client.start(*pages(60))
        await client.control(Control.SEAL)
        assert await client.work_off() == 60
        assert (await client.stats()).state is CrawlState.FINISHED
        assert len(store.held) > 0, "the last blocks are not safe yet"
        await frontier.close()
        assert (store.lanes, store.held) == ({}, {})

    @pytest.mark.parametrize("comes_back", [True, False])
    async def test_a_crawl_that_is_over_waits_for_a_broker_that_is_away(
        self,
        redis_server: RedisServer,
        store: Store,
        caplog: pytest.LogCaptureFixture,
        comes_back: bool,
    ) -> None:
        waits = Waits(ack_s=0.0, enough=1.0, clears_s=LIMIT_S if comes_back else 0.0)
        frontier = CarriedFrontier(redis_server.url, MemoryCarrier(store), SMALL, waits=waits)
        client = Client(frontier, "worker", CRAWL)
        await client.start(*pages(60))
        await client.control(Control.SEAL)
        assert await client.work_off() == 60
        store.is_away = True
        caplog.clear()
        closing = asyncio.create_task(frontier.close())
        if comes_back:
            await until("a word of it", lambda: "waiting for the broker" in caplog.text)
            store.is_away = False
        await in_time("the end", closing)
        assert (store.lanes == {}) is comes_back
        assert ("the same command again deletes them" in caplog.text) is not comes_back
        store.is_away = False
        again = CarriedFrontier(redis_server.url, MemoryCarrier(store), SMALL, waits=waits)
        assert (await again.add(CRAWL, pages(1))).duplicates == 1
        await again.close()
        assert store.lanes == {}

    async def test_are_gone_if_nobody_could_note_that_they_were_published(
        self, redis_server: RedisServer, store: Store, raw: Any
    ) -> None:
        """What is fetched before that is still in the outbox, and nothing of it is outside."""
        waits = Waits(ack_s=0.0, enough=1.0)
        frontier = CarriedFrontier(redis_server.url, MemoryCarrier(store), SMALL, waits=waits)
        client = Client(frontier, "worker", CRAWL)
        store.loses_confirms = True
        await client.start(*pages(30))
        await client.control(Control.SEAL)
        outbox = await key_of(client, "outbox")

        async def work() -> bool:
            await client.work_off()
            return (await client.stats()).state is CrawlState.FINISHED

        await until("the end of the crawl", work)
        assert raw.llen(outbox) > 0
        await frontier.close()
        assert (raw.llen(outbox), store.lanes) == (0, {})


class TestOthers:
    async def test_who_has_no_carrier_is_refused(
        self, client: Client, redis_server: RedisServer
    ) -> None:
        await client.start(*pages(9))
        plain = RedisFrontier(redis_server.url)
        calls = [
            plain.start(CRAWL, open_rules()),
            plain.add(CRAWL, pages(1)),
            plain.lease(CRAWL, Ask("worker", 1)),
            plain.control(CRAWL, Control.CANCEL),
            plain.forget(CRAWL),
        ]
        for call in calls:
            with pytest.raises(ConfigError, match="--frontier and --state that it was begun with"):
                await call
        assert (await plain.stats(CRAWL)).waiting == 9
        await plain.close()

    async def test_a_plain_crawl_beside_it_is_left_alone(
        self, client: Client, store: Store, redis_server: RedisServer
    ) -> None:
        plain = RedisFrontier(redis_server.url)
        other = Client(plain, "worker", "plain")
        await other.start(*pages(50))
        beside = Client(client.frontier, "worker", "plain")
        await beside.add(*pages(50, "b.example"))
        assert await beside.work_off() == 100
        assert store.lanes == {}
        await plain.close()

    async def test_blocks_of_the_crawl_that_it_was_before_are_thrown_away(
        self, client: Client, store: Store, caplog: pytest.LogCaptureFixture
    ) -> None:
        await client.start(*pages(7))
        await published(client, store, 1)
        kept = list(store.blocks)
        await client.frontier.forget(CRAWL)
        await client.start(*pages(7, priority=0), entry(f"{HOST}/new"))
        await MemoryCarrier(store).publish(kept)
        assert await client.work_off() == 8
        stats = await client.stats()
        assert (stats.added, stats.foreign) == (8, 0)
        assert f"1 blocks of the crawl that was '{CRAWL}' before were still" in caplog.text

    async def test_messages_of_strangers_are_thrown_away(
        self, client: Client, store: Store, caplog: pytest.LogCaptureFixture
    ) -> None:
        await client.start(*pages(7))
        await published(client, store, 1)
        store.lanes[SHARED].appendleft(Block(7, SHARED, [b"hello"]))
        assert await client.work_off() == 7
        assert "has blocks that crawl 'crawl' has not sent: they are removed" in caplog.text
        assert (await client.stats()).foreign == 1

    async def test_who_may_write_to_the_broker_brings_no_tasks(
        self, client: Client, store: Store, caplog: pytest.LogCaptureFixture
    ) -> None:
        """He has read how blocks look, and whose they are; he lets real ones be, or changes them,
        and there are very many of his."""
        await client.start(*pages(7))
        await published(client, store, 1)
        (real,) = store.blocks
        came = read_block(real)
        assert came is not None
        head = came.head.text.encode()
        own = len(head).to_bytes(2) + head + pack(entry("evil.example/"))
        changed = [real.entries[0], real.entries[1].replace(b"/5", b"/6"), *real.entries[2:]]
        store.lanes[SHARED].extendleft(Block(n, SHARED, [own]) for n in range(FORGED))
        store.lanes[SHARED].appendleft(Block(real.id, SHARED, changed))

        async def done() -> bool:
            await client.work_off()
            return (await client.stats()).done == 7

        await until("all that is real", done)
        stats = await client.stats()
        assert (stats.added, stats.foreign) == (7, FORGED + 1)
        assert caplog.text.count("they are removed") == 1

    async def test_a_real_block_that_is_put_there_again_is_nothing_new(
        self, client: Client, store: Store
    ) -> None:
        await client.start(*pages(7))
        await published(client, store, 1)
        store.lanes[SHARED].extend(store.blocks * 3)
        assert await client.work_off() == 7
        stats = await client.stats()
        assert (stats.added, stats.foreign) == (7, 0)

    async def test_blocks_that_never_left_redis_have_seals_once_they_do(
        self, redis_server: RedisServer, store: Store
    ) -> None:
        inside = open_frontier(f"{redis_server.url}?blocks=on&window=2&block=3")
        client = Client(inside, "worker", CRAWL)
        await client.start(*pages(60))
        assert await client.work_off() == 60
        await inside.close()
        frontier = CarriedFrontier(redis_server.url, MemoryCarrier(store), SMALL)
        client = Client(frontier, "worker", CRAWL)
        await client.start(*pages(7, "b.example"))
        await published(client, store, 1)
        (block,) = store.blocks
        came = read_block(block)
        assert came is not None
        assert len(came.seal) == SEAL_BYTES
        assert await client.work_off() == 7
        await frontier.close()


class TestAnotherCarrier:
    @pytest.fixture
    def other_store(self) -> Store:
        return Store()

    @pytest.fixture
    async def other(
        self, redis_server: RedisServer, other_store: Store
    ) -> AsyncIterator[CarriedFrontier]:
        frontier = CarriedFrontier(redis_server.url, MemoryCarrier(other_store, "another"), SMALL)
        yield frontier
        await frontier.close()

    async def test_is_refused_and_nothing_is_lost(
        self, client: Client, store: Store, other: CarriedFrontier
    ) -> None:
        await client.start(*pages(30))
        await published(client, store, 8)
        calls = [
            other.start(CRAWL, open_rules(rate="1/h")),
            other.add(CRAWL, pages(9, "b.example")),
            other.lease(CRAWL, Ask("another", 1)),
            other.control(CRAWL, Control.CANCEL),
            other.repair(CRAWL, None),
            other.forget(CRAWL),
        ]
        for call in calls:
            with pytest.raises(ConfigError, match="'crawl' are with memory, and not with another"):
                await call
        assert (await other.stats(CRAWL)).waiting == 30
        assert await client.work_off() == 30

    async def test_takes_over_what_the_first_one_could_not_be_given(
        self, client: Client, store: Store, other: CarriedFrontier
    ) -> None:
        """Its address was wrong: nothing is there."""
        store.is_away = True
        await client.start(*pages(30))
        await client.lease(0)
        assert await Client(other, "another", CRAWL).work_off() == 30
        assert (await client.stats()).foreign == 0

    async def test_can_be_the_same_under_a_new_name(
        self, client: Client, store: Store, redis_server: RedisServer
    ) -> None:
        await client.start(*pages(30))
        await published(client, store, 8)
        renamed = MemoryCarrier(store, "new")
        moved = CarriedFrontier(redis_server.url, renamed, SMALL, has_moved=True)
        await moved.lease(CRAWL, Ask("another", 0))
        with pytest.raises(ConfigError, match="are with new, and not with memory"):
            await client.control(Control.SEAL)
        assert await Client(moved, "another", CRAWL).work_off() == 30
        await moved.close()

    async def test_is_noticed_by_those_at_work(
        self,
        client: Client,
        redis_server: RedisServer,
        other: CarriedFrontier,
        other_store: Store,
    ) -> None:
        """Somebody has started the crawl over, and elsewhere."""
        await client.start(*pages(3))
        await client.lease(1)
        plain = CarriedFrontier(redis_server.url, MemoryCarrier(Store(), "another"), SMALL)
        await RedisFrontier.forget(plain, CRAWL)
        await plain.close()
        elsewhere = Client(other, "another", CRAWL)
        await elsewhere.start(*pages(30))
        await elsewhere.lease(0)
        await until("blocks elsewhere", lambda: len(other_store.blocks) == 8)

        async def is_refused() -> bool:
            try:
                await client.lease(0)
            except ConfigError:
                return True
            return False

        await until("the worker to notice", is_refused)

    async def test_a_crawl_whose_tasks_begin_to_travel_has_one_from_then_on(
        self, redis_server: RedisServer, client: Client, store: Store, other: CarriedFrontier
    ) -> None:
        plain = RedisFrontier(redis_server.url)
        await Client(plain, "worker", CRAWL).start(*pages(9))
        await plain.close()
        await client.start(*pages(30))
        await published(client, store, 7)
        with pytest.raises(ConfigError, match="are with memory"):
            await other.lease(CRAWL, Ask("another", 1))
        assert await client.work_off() == 30


class TestTrouble:
    async def test_a_broker_that_is_away_holds_up_only_what_it_has(
        self, client: Client, store: Store, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        await client.start(*pages(7))
        await published(client, store, 1)
        store.is_away = True
        assert len(await client.lease(9)) == SMALL.fast
        await client.add(entry("b.example/"))
        assert (await client.lease_one()).task.site == "b.example"
        assert await client.frontier.hosts(CRAWL, 9, HostOrder.FAILING) == []
        assert {h.host: h.dry_s > 0 for h in await client.frontier.hosts(CRAWL, 9)} == {
            HOST: True,
            "b.example": False,
        }
        await until("a word of it", lambda: "waiting for the broker" in caplog.text)
        store.is_away = False
        await until("a block that comes", lambda: client.lease(1))
        await until("a word of it", lambda: "the broker is back" in caplog.text)
        assert not any(host.dry_s for host in await client.frontier.hosts(CRAWL, 9))
        assert caplog.text.count("waiting for the broker") == 1

    async def test_a_host_whose_blocks_do_not_come_delays_no_other(
        self, redis_server: RedisServer, store: Store, raw: Any
    ) -> None:
        waits = Waits(fill_s=LIMIT_S / 3)
        frontier = CarriedFrontier(redis_server.url, MemoryCarrier(store), SMALL, waits=waits)
        client = Client(frontier, "worker", CRAWL)
        await client.start(*pages(30), rate="20/s")
        await published(client, store, 9)
        store.lanes.clear()

        async def is_dry() -> bool:
            await client.lease(1)
            return bool(raw.zcard(await key_of(client, "dry")))

        await until("an empty window", is_dry)
        await client.add(*pages(2, "b.example"))
        for _ in range(2):  # The second one waits for its turn.
            assert (await client.lease_one()).task.site == "b.example"
        await frontier.close()

    async def test_no_more_is_brought_than_can_wait_for_it(
        self, client: Client, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(of_chores, "MOST_OUTBOX", 3)
        monkeypatch.setattr(of_frontier, "MOST_OUTBOX", 3)
        store.is_away = True
        await client.start(*pages(20))
        leases = await client.lease(2)
        await until("nothing is handed out", lambda: nothing(client))
        with pytest.raises(StorageBusy):
            await client.add(*pages(3, "b.example"))
        stale, grant = await client.exchange(*map(outcome, leases), limit=2)
        assert (stale, grant.leases) == ([], []), "what is done can be finished"
        store.is_away = False
        await until("the broker is back", lambda: client.lease(1))
        await client.add(*pages(3, "b.example"))

    async def test_what_is_missing_is_told(
        self, client: Client, store: Store, caplog: pytest.LogCaptureFixture
    ) -> None:
        await client.start(*pages(60))
        await published(client, store, 18)
        purged = dict(store.lanes)
        store.lanes.clear()
        leases = await client.lease(60)
        assert len(leases) == SMALL.fast

        async def missing() -> int:
            await client.lease(0)
            return (await client.stats()).missing

        assert await until("what is missing", missing) == 54
        (told,) = [text for text in caplog.messages if "missing" in text]
        assert told.startswith(f"54 tasks are missing in the broker, and crawl '{CRAWL}' waits")
        assert (await client.stats()).state is CrawlState.RUNNING
        store.lanes.update(purged)  # Somebody had a copy.
        await client.finish(*map(outcome, leases))

        async def work() -> bool:
            await client.work_off()
            return (await client.stats()).remaining == 0

        assert await until("what has turned up again", work)

    async def test_what_is_outside_is_found_as_such(self, client: Client, store: Store) -> None:
        tasks = pages(7)
        await client.start(*tasks)
        await published(client, store, 1)
        record = await client.record(tasks[5])
        assert (record.state, record.reason) == (TaskState.WAITING, OUTSIDE_OR_DONE)
        await client.work_off()
        assert await client.state(tasks[5]) is TaskState.DONE

    async def test_what_is_outside_when_the_crawl_is_cancelled_does_not_wait(
        self, client: Client, store: Store
    ) -> None:
        tasks = pages(7)
        await client.start(*tasks)
        await published(client, store, 1)
        await client.control(Control.CANCEL)
        record = await client.record(tasks[5])
        assert (record.state, record.reason) == (TaskState.DROPPED, CANCELLED_OR_DONE)

    async def test_a_server_that_was_restarted_gets_its_blocks_again(
        self, client: Client, store: Store, raw: Any
    ) -> None:
        """What was brought in before is brought in once more, and nothing is new of it."""
        await client.start(*pages(30))
        await published(client, store, 8)
        first = await client.lease(10)
        raw.script_flush()
        await client.finish(*map(outcome, first))
        assert await client.work_off() == 20
        await until("receipts", lambda: not store.held)
        assert (await client.stats()).added == 30

    async def test_blocks_leave_again_before_the_broker_forgets_them(
        self, redis_server: RedisServer, store: Store, raw: Any
    ) -> None:
        clock, carrier = FakeClock(), MemoryCarrier(store)
        carrier.keeps_s = 14 * 86400.0
        frontier = CarriedFrontier(
            redis_server.url, carrier, SMALL, clock, Waits(ack_s=0.0, enough=1.0)
        )
        client = Client(frontier, "worker", CRAWL)
        await client.start(*pages(30))
        await published(client, store, 8)
        old = {block.id for block in store.blocks}
        await frontier.close()
        clock.now += 11 * 86400
        frontier = CarriedFrontier(
            redis_server.url, carrier, SMALL, clock, Waits(ack_s=0.0, enough=1.0)
        )
        client = Client(frontier, "worker", CRAWL)
        await client.lease(0)
        await until("new blocks", lambda: not old & {block.id for block in store.blocks})
        await published(client, store, 8)
        assert carried_faults(raw, CRAWL) == []
        assert await client.work_off() == 30
        await frontier.close()

    async def test_a_pause_is_not_longer_than_the_broker_keeps_them(
        self, redis_server: RedisServer, store: Store, caplog: pytest.LogCaptureFixture
    ) -> None:
        clock, carrier = FakeClock(), MemoryCarrier(store)
        carrier.keeps_s = 14 * 86400.0
        waits = Waits(ack_s=0.0, enough=1.0)
        frontier = CarriedFrontier(redis_server.url, carrier, SMALL, clock, waits)
        client = Client(frontier, "worker", CRAWL)
        await client.start(*pages(30))
        await published(client, store, 8)
        await client.control(Control.PAUSE)
        assert "keeps tasks for 14 days, and workers renew them after 10" in caplog.text
        await frontier.close()
        clock.now += 15 * 86400
        frontier = CarriedFrontier(redis_server.url, carrier, SMALL, clock, waits)
        client = Client(frontier, "worker", CRAWL)
        await client.lease(0)
        await until("a word of it", lambda: "24 have been there for longer" in caplog.text)
        await frontier.close()
