"""Deliverers: several at once, stores that are away or fail, and being told to stop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import redis

from contract.results_suite import CRAWL, all_items, readings, some_item, some_page
from shoal.errors import ConfigError, StorageBusy, StorageFailed
from shoal.results import delivery
from shoal.results.delivery import Delivered, Deliverer
from shoal.results.port import Batch, Keep, Results, RunNote
from shoal.results.sqlite.store import SqliteResults
from shoal.results.stream import RedisStreamResults, ResultQueue
from shoal.runtime import patience
from support.redis_servers import RedisServer
from support.streams import age, deliver_all, held, stream_url
from support.streams import waiting as in_stream
from support.until import in_time, until

BATCHES = 30


class Store(SqliteResults):
    """A store that can be away, fail, or keep a writer waiting."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.error: Exception | None = None
        self.open = asyncio.Event()
        self.open.set()
        self.asked = asyncio.Event()
        self.sizes: list[int] = []

    async def save(self, crawl: str, batch: Batch) -> None:
        self.asked.set()
        await in_time("the test to open the store", self.open.wait())
        if self.error:
            raise self.error
        await super().save(crawl, batch)
        self.sizes.append(len(batch.items))


Start = Callable[..., Deliverer]


@pytest.fixture
def raw(redis_server: RedisServer) -> redis.Redis:
    client = redis_server.client()
    client.flushall()
    return client


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = Store(tmp_path / "shoal.db")
    yield store
    await store.close()


@pytest.fixture
async def stream(redis_server: RedisServer, raw: redis.Redis) -> AsyncIterator[Results]:
    """With some batches in it."""
    results = RedisStreamResults(stream_url(redis_server))
    for number in range(BATCHES):
        page = some_page(attempt=number)
        await results.save(CRAWL, Batch([page], [some_item(f"k{number}")]))
    yield results
    await results.close()


@pytest.fixture
async def deliverer(redis_server: RedisServer, store: Store) -> AsyncIterator[Start]:
    opened: list[ResultQueue] = []

    def deliverer(into: Results = store, *, until_empty: bool = True) -> Deliverer:
        opened.append(ResultQueue(stream_url(redis_server)))
        return Deliverer(opened[-1], into, until_empty=until_empty)

    yield deliverer
    for queue in opened:
        await queue.close()


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


async def assert_all_stored(store: Results) -> None:
    assert sorted(item.key for item in await all_items(store)) == sorted(
        f"k{n}" for n in range(BATCHES)
    )
    assert len(await store.pages_of(CRAWL, some_page().fingerprint)) == BATCHES


async def test_it_says_what_it_did(stream: Results, store: Store, deliverer: Start) -> None:
    mover = deliverer()
    await mover.run()
    assert mover.delivered == Delivered(batches=BATCHES, pages=BATCHES, items=BATCHES)
    await assert_all_stored(store)


async def test_two_at_once_write_everything_once(
    stream: Results, store: Store, deliverer: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shoal.results.stream.queue.TAKE_ENTRIES", 2)
    other = Store(tmp_path / "shoal.db")
    movers = [deliverer(), deliverer(other)]
    for each in (store, other):
        each.open.clear()
    running = [asyncio.create_task(mover.run()) for mover in movers]
    for each in (store, other):
        await in_time("both stores to be asked", each.asked.wait())
    for each in (store, other):
        each.open.set()
    await in_time("an empty stream", asyncio.gather(*running))
    await other.close()
    assert sum(mover.delivered.items for mover in movers) == BATCHES
    assert all(mover.delivered.items for mover in movers)
    await assert_all_stored(store)


async def test_new_batches_are_taken_as_they_come(
    stream: Results, store: Store, deliverer: Start
) -> None:
    mover = deliverer(until_empty=False)
    running = asyncio.create_task(mover.run())
    await until("the first batches", lambda: store.sizes)
    await stream.save(CRAWL, Batch(items=[some_item("late")]))

    async def has_come() -> bool:
        return "late" in {item.key for item in await all_items(store)}

    await until("the late item", has_come)
    mover.drain()
    await in_time("its end", running)


class TestPortions:
    async def test_batches_of_a_crawl_go_together(
        self, stream: Results, store: Store, deliverer: Start
    ) -> None:
        await deliverer().run()
        assert store.sizes == [BATCHES]

    async def test_crawls_and_rules_do_not_mix(
        self, raw: redis.Redis, redis_server: RedisServer, store: Store, deliverer: Start
    ) -> None:
        results = RedisStreamResults(stream_url(redis_server))
        always = Keep("always")
        await results.save("a", Batch(items=[some_item("1")]))
        await results.note_run("b", RunNote("redis://one"))
        await results.save("b", Batch(items=[some_item("1")], keep=always))
        await results.save("a", Batch(items=[some_item("2")]))
        await results.save("b", Batch(items=[some_item("1", at=2.0, data=b"{}")], keep=always))
        await results.save("b", Batch(items=[some_item("1", at=3.0, data=b"{}")], keep=always))
        await results.save("b", Batch(items=[some_item("2")]))
        await results.close()
        await deliverer().run()
        assert [item.key for item in await all_items(store, "a")] == ["1", "2"]
        assert [item.key for item in await all_items(store, "b")] == ["1", "2"]
        assert await readings(store, "1", "b") == [1.0, 2.0, 3.0]
        assert await store.note_of("b") == RunNote("redis://one")


class TestStoreAway:
    @pytest.fixture(autouse=True)
    def at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(patience, "RETRY_FIRST_S", 0.001)

    async def test_it_waits_and_says_so_once(
        self, stream: Results, store: Store, deliverer: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        store.error = StorageBusy("gone fishing")
        mover = deliverer()
        running = asyncio.create_task(mover.run())
        for _ in range(4):
            await in_time("another try", store.asked.wait())
            store.asked.clear()
        store.error = None
        await in_time("its end", running)
        assert warnings(caplog) == [
            "waiting for the results store: gone fishing",
            "the results store is back",
        ]
        await assert_all_stored(store)

    async def test_others_leave_its_entries_alone(
        self,
        stream: Results,
        store: Store,
        deliverer: Start,
        raw: redis.Redis,
        redis_server: RedisServer,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """However long the store takes: it keeps touching them."""
        monkeypatch.setattr(delivery, "TOUCH_EVERY_S", 0.001)
        touched = asyncio.Event()
        touch = ResultQueue.touch

        async def telling(queue: ResultQueue, entries: object) -> None:
            await touch(queue, entries)  # type: ignore[arg-type]
            touched.set()

        monkeypatch.setattr(ResultQueue, "touch", telling)
        store.open.clear()
        mover = deliverer()
        running = asyncio.create_task(mover.run())
        await in_time("the store to be asked", store.asked.wait())
        age(raw)
        for _ in range(2):  # The first may have been under way when they were aged.
            touched.clear()
            await in_time("entries to be touched", touched.wait())
        other = ResultQueue(stream_url(redis_server))
        assert (await other.take()).entries == []
        await other.close()
        store.open.set()
        await in_time("its end", running)
        await assert_all_stored(store)

    async def test_told_to_stop_it_gives_back_what_it_has(
        self,
        stream: Results,
        store: Store,
        deliverer: Start,
        redis_server: RedisServer,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        store.error = StorageBusy("gone fishing")
        mover = deliverer()
        running = asyncio.create_task(mover.run())
        await in_time("the store to be asked", store.asked.wait())
        mover.drain()
        await in_time("its end", running)
        assert "stays in the stream: gone fishing" in warnings(caplog)[-1]
        assert mover.delivered.items == 0
        store.error = None
        assert (await deliver_all(stream_url(redis_server), store)).items == BATCHES


class TestStopping:
    async def test_the_batch_in_hand_is_finished(
        self,
        stream: Results,
        store: Store,
        deliverer: Start,
        raw: redis.Redis,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr("shoal.results.stream.queue.TAKE_ENTRIES", 10)
        store.open.clear()
        mover = deliverer(until_empty=False)
        running = asyncio.create_task(mover.run())
        await in_time("the store to be asked", store.asked.wait())
        mover.drain()
        store.open.set()
        await in_time("its end", running)
        assert store.sizes == [10]
        assert (in_stream(raw), held(raw)) == (BATCHES - 10, 0)
        assert mover.delivered.waiting == BATCHES - 10

    async def test_with_nothing_to_do(self, raw: redis.Redis, deliverer: Start) -> None:
        mover = deliverer(until_empty=False)
        running = asyncio.create_task(mover.run())
        mover.drain()
        await in_time("its end", running)
        assert mover.delivered == Delivered()

    async def test_a_store_that_fails_ends_it_and_nothing_is_lost(
        self, stream: Results, store: Store, deliverer: Start, redis_server: RedisServer
    ) -> None:
        store.error = StorageFailed("the disk is full")
        with pytest.raises(StorageFailed, match="the disk is full"):
            await deliverer().run()
        store.error = None
        assert (await deliver_all(stream_url(redis_server), store)).items == BATCHES
        await assert_all_stored(store)

    async def test_a_store_that_is_not_there_is_noticed_before_there_is_work(
        self, raw: redis.Redis, deliverer: Start, tmp_path: Path
    ) -> None:
        nowhere = SqliteResults(tmp_path / "nowhere" / "shoal.db")
        with pytest.raises(ConfigError, match="the folder does not exist"):
            await deliverer(nowhere, until_empty=False).run()
        await nowhere.close()
