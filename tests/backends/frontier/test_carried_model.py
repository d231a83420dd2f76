"""Random lives of a crawl whose tasks travel. Processes die between any two steps, the broker loses
confirms and delivers twice, Redis loses its last second: no page is lost, and none is new twice."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, ClassVar, TypeVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from shoal.errors import StorageBusy
from shoal.frontier.broker.block_mover import BlockMover
from shoal.frontier.broker.blocks import from_outbox
from shoal.frontier.broker.carrier import Block
from shoal.frontier.broker.carrier_record import CarrierRecord
from shoal.frontier.broker.receipts import ACK_AFTER_S, Receipts
from shoal.frontier.broker.request_counter import RequestCounter
from shoal.frontier.redis.frontier import RedisFrontier
from shoal.frontier.redis.packing import pack
from shoal.frontier.redis.windows import CarrierSetup, Window
from shoal.frontier.values import Ask, Control, CrawlState, Entry, Lease, Stats
from support.carried_audit import carried_faults
from support.frontiers import CRAWL, FakeClock, entry, open_rules, outcome
from support.memory_carrier import MemoryCarrier, Store
from support.redis_servers import RedisServer
from support.state_machines import lives

T = TypeVar("T")
PAGES = 60
SEEDS = 4
LINKS = 5
LEASE_S = 4.0
LOST_S = 1.0
"""What a server that is killed may lose."""
ROUNDS = 400
WINDOW = Window(paced=1, fast=1, block=2)


def page(number: int) -> Entry:
    host, priority = f"h{number % 2}.example", number // 20
    return entry(f"{host}/{number}", priority=priority)


ENTRIES = [page(number) for number in range(PAGES)]
FOREIGN = entry("h0.example/foreign")
NUMBERS = {each.fingerprint: number for number, each in enumerate(ENTRIES)}


def links_of(number: int) -> list[Entry]:
    """Every page is found on one that comes before it, and some on several."""
    found = [number * LINKS + SEEDS + at for at in range(LINKS)] + [number // 2]
    return [ENTRIES[at] for at in found if at < PAGES]


class Process:
    """What one process has of the crawl. It does nothing by itself."""

    def __init__(self, url: str, store: Store, clock: FakeClock, ack_after_s: float) -> None:
        self.url, self.store, self.clock, self.ack_after_s = url, store, clock, ack_after_s
        self.frontier = RedisFrontier(url, clock, CarrierSetup(WINDOW, "memory"))
        self.begin()

    def begin(self) -> None:
        self.leases: list[Lease] = []
        self.carrier = MemoryCarrier(self.store)
        self.receipts = Receipts(self.ack_after_s, self.clock)

    async def mover(self) -> BlockMover:
        shard = (await self.frontier._crawl(CRAWL)).home
        link = self.frontier._link
        record = CarrierRecord(link, shard, self.carrier)
        request_counter = RequestCounter(link, self.carrier)
        return BlockMover(link, shard, self.carrier, record, self.receipts, request_counter)

    def die(self) -> None:
        """All that it knew is gone; what it held of the broker's waits again."""
        self.store.let_go(self.carrier)
        self.begin()


class CarriedMachine(RuleBasedStateMachine):
    server: ClassVar[RedisServer]
    ack_after_s = ACK_AFTER_S

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.client: Any = self.server.client()
        self.client.flushall()
        self.clock = FakeClock()
        self.store = Store()
        self.restarts = 1000
        self.past: list[tuple[float, dict[bytes, bytes]]] = []
        begun = self.server.url, self.store, self.clock, self.ack_after_s
        self.processes = [Process(*begun) for _ in range(2)]
        self.visited = set[int]()

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(call)

    def teardown(self) -> None:
        try:
            self.run(self.work_off())
        finally:
            for process in self.processes:
                self.run(process.frontier.close())
            self.runner.close()

    # What happens

    @initialize()
    def begin(self) -> None:
        self.run(self.start())
        self.clock.now += LOST_S + 0.1
        self.keep_past()

    async def start(self) -> None:
        frontier = self.processes[0].frontier
        await frontier.start(CRAWL, open_rules(lease_s=LEASE_S, max_losses=200))
        await frontier.add(CRAWL, ENTRIES[:SEEDS])
        await frontier.control(CRAWL, Control.SEAL)

    @rule(which=st.integers(0, 1), count=st.integers(1, 6))
    def work(self, which: int, count: int) -> None:
        self.run(self.visit(self.processes[which], count))

    async def visit(self, process: Process, count: int) -> int:
        """Lease pages, and finish them."""
        await self.lease(process, count)
        leases, process.leases = process.leases, []
        outcomes = []
        for lease in leases:
            number = NUMBERS[lease.fingerprint]
            self.visited.add(number)
            outcomes.append(outcome(lease, follow_ups=links_of(number)))
        await process.frontier.finish(CRAWL, outcomes)
        return len(leases)

    async def lease(self, process: Process, count: int) -> None:
        name = f"worker {self.processes.index(process)}"
        process.leases += (await process.frontier.lease(CRAWL, Ask(name, count))).leases

    @rule(which=st.integers(0, 1), count=st.integers(1, 3))
    def hold_on_to_pages(self, which: int, count: int) -> None:
        self.run(self.lease(self.processes[which], count))

    @rule(which=st.integers(0, 1))
    def carry(self, which: int) -> None:
        self.run(self.move(self.processes[which]))

    async def move(self, process: Process) -> None:
        """All that chores.py does in a round."""
        mover = await process.mover()
        with suppress(StorageBusy):
            backlog = await mover.backlog(2)
            if backlog.outbox:
                await mover.publish(backlog.crawl_id)
            await mover.refill(backlog)
            await mover.acknowledge(backlog)

    @rule(which=st.integers(0, 1), seconds=st.sampled_from([0.05, 0.4, 1.1, 5.2]))
    def time_passes(self, which: int, seconds: float) -> None:
        self.clock.now += seconds
        self.run(self.move(self.processes[which]))

    # What goes wrong

    @rule(which=st.integers(0, 1))
    def a_process_dies(self, which: int) -> None:
        self.processes[which].die()

    @rule(which=st.integers(0, 1))
    def it_dies_before_the_outbox_is_cleared(self, which: int) -> None:
        self.run(self.publish_only(self.processes[which]))
        self.processes[which].die()

    async def publish_only(self, process: Process) -> None:
        shard = (await process.frontier._crawl(CRAWL)).home
        record = CarrierRecord(process.frontier._link, shard, process.carrier)
        await record.read()
        outbox = self.client.lrange(f"{shard.base}{record.crawl_id}:outbox", 0, 1)
        with suppress(StorageBusy):
            await process.carrier.publish([from_outbox(CRAWL, at, record.key) for at in outbox])

    @rule(which=st.integers(0, 1))
    def blocks_come_back_before_the_outbox_is_cleared(self, which: int) -> None:
        self.run(self.publish_slowly(self.processes[which]))

    async def publish_slowly(self, process: Process) -> None:
        await self.publish_only(process)
        mover = await process.mover()
        with suppress(StorageBusy):
            await mover.refill(await mover.backlog(2))

    @rule(at=st.integers(0, 9))
    def somebody_else_writes_to_a_lane(self, at: int) -> None:
        """He has a real block to look at, and puts a task of his own in its place."""
        if blocks := self.store.blocks:
            block = blocks[at % len(blocks)]
            entries = [block.entries[0], *[pack(FOREIGN)] * (len(block.entries) - 1)]
            self.store.lanes[block.lane].appendleft(Block(block.id, block.lane, entries))
            forged = Block(block.id + 1, block.lane, entries)
            self.store.lanes[block.lane].appendleft(forged)

    @rule(which=st.integers(0, 1), at=st.integers(0, 9))
    def it_dies_with_what_it_has_fetched(self, which: int, at: int) -> None:
        lanes = sorted(self.store.lanes)
        with suppress(StorageBusy):
            if lanes:
                self.run(self.processes[which].carrier.fetch(lanes[at % len(lanes)], 3))
        self.processes[which].die()

    @rule(at=st.integers(0, 9))
    def the_broker_has_a_block_twice(self, at: int) -> None:
        if blocks := self.store.blocks:
            block = blocks[at % len(blocks)]
            self.store.lanes[block.lane].append(block)

    @rule(is_away=st.booleans(), loses_confirms=st.booleans())
    def the_broker_is_unwell(self, is_away: bool, loses_confirms: bool) -> None:
        self.store.is_away, self.store.loses_confirms = is_away, loses_confirms

    @rule(at=st.integers(0, 9))
    def redis_is_set_back(self, at: int) -> None:
        kept = at % len(self.past)
        _, keys = self.past[kept]
        self.past = self.past[: kept + 1]  # What came after never was.
        pipe = self.client.pipeline(transaction=False)
        pipe.flushall()
        pipe.script_flush()
        for key, value in keys.items():
            pipe.restore(key, 0, value)
        # A real one has another name for its history then.
        self.restarts += 1
        pipe.set(f"shoal:{{{CRAWL}}}:restarts", self.restarts)
        pipe.execute()

    @rule(which=st.integers(0, 1), at=st.integers(0, 9))
    def redis_is_set_back_during_a_slow_round(self, which: int, at: int) -> None:
        """The broker takes its time, and when it is through, Redis is another one."""
        self.run(self.move(self.processes[which]))
        mover = self.run(self.processes[which].mover())
        backlog = self.run(mover.backlog())
        self.redis_is_set_back(at)
        self.clock.now += 5.2
        with suppress(StorageBusy):
            self.run(mover.acknowledge(backlog))

    @invariant()
    def keep_past(self) -> None:
        names = list(self.client.scan_iter(count=1000))
        pipe = self.client.pipeline(transaction=False)
        for name in names:
            pipe.dump(name)
        values = pipe.execute()
        kept = {name: value for name, value in zip(names, values, strict=True) if value is not None}
        self.past = [at for at in self.past if self.clock.now - at[0] <= LOST_S]
        self.past.append((self.clock.now, kept))

    @invariant()
    def it_adds_up(self) -> None:
        assert carried_faults(self.client, CRAWL) == []

    # In the end

    async def work_off(self) -> None:
        """All is well again: every page is visited, and no lane keeps anything."""
        self.store.is_away = self.store.loses_confirms = False
        if not self.past:
            return  # It did not even begin.
        for process in self.processes:
            process.leases = []
        for _ in range(ROUNDS):
            self.clock.now += 1.0
            for process in self.processes:
                await self.move(process)
                await self.visit(process, 9)
            stats = await self.processes[0].frontier.stats(CRAWL)
            if stats.state is CrawlState.FINISHED:
                break
        self.check_end(stats)
        await self.clear_up()

    def check_end(self, stats: Stats) -> None:
        assert stats.state is CrawlState.FINISHED, stats
        assert (stats.added, stats.done) == (PAGES, PAGES), stats
        assert self.visited == set(range(PAGES))

    async def clear_up(self) -> None:
        for _ in range(2):  # What came before Redis was set back is brought in once more.
            self.clock.now += 6.0
            for process in self.processes:
                mover = await process.mover()
                await mover.acknowledge(await mover.backlog())
        assert not any(len(process.receipts) for process in self.processes)
        assert not self.store.held
        backlog = await (await self.processes[0].mover()).backlog()
        assert (backlog.outside, backlog.outbox, backlog.windows) == (0, 0, [])
        mover = await self.processes[0].mover()
        await mover.drop(await mover.lanes(backlog.crawl_id))
        assert self.store.lanes == {}


@pytest.fixture(autouse=True)
def server(redis_server: RedisServer) -> None:
    CarriedMachine.server = redis_server


TestCarriedModel = lives(CarriedMachine, 40, steps=40, is_slow=True)


class HastyMachine(CarriedMachine):
    """Acknowledges blocks as soon as they have come in."""

    ack_after_s = 0.0


@pytest.mark.parametrize("machine", [CarriedMachine, HastyMachine])
def test_a_block_is_lost_if_it_is_acknowledged_before_redis_is_sure_of_it(
    machine: type[CarriedMachine],
) -> None:
    """One life, step by step: what the delay is for, and that the model sees a loss."""
    life = machine()
    life.begin()
    for _ in range(3):
        life.time_passes(0, 1.1)
        life.work(0, 6)
        life.keep_past()
    before = len(life.past) - 1
    assert life.store.blocks, "nothing is with the broker"
    life.carry(0)
    life.keep_past()
    assert (len(life.processes[0].receipts) == 0) is (machine is HastyMachine)
    life.redis_is_set_back(before)
    if machine is HastyMachine:
        with pytest.raises(AssertionError, match="RUNNING"):
            life.teardown()
    else:
        life.teardown()
