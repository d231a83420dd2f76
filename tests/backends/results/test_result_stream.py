"""The stream of results by itself: what goes in, who gets it, and what is not let through."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
import redis

from contract.results_suite import CRAWL, all_items, some_item, some_page, some_rejected
from shoal.errors import ConfigError, StorageBusy
from shoal.results.port import Batch, Keep, Results, RunNote
from shoal.results.sqlite.store import SqliteResults
from shoal.results.stream import RedisStreamResults, ResultQueue, wire
from shoal.results.stream import queue as queue_module
from shoal.results.stream.wire import Garbage, StreamEntry
from support.redis_servers import RedisServer
from support.streams import KEY, age, deliver_all, held, put_aside, stream_url, waiting

Open = Callable[..., RedisStreamResults]
OpenQueue = Callable[[], ResultQueue]


@pytest.fixture
def raw(redis_server: RedisServer) -> redis.Redis:
    client = redis_server.client()
    client.flushall()
    return client


@pytest.fixture
async def connect(redis_server: RedisServer, raw: redis.Redis) -> AsyncIterator[Open]:
    opened: list[RedisStreamResults] = []

    def connect(**options: object) -> RedisStreamResults:
        opened.append(RedisStreamResults(stream_url(redis_server, **options)))
        return opened[-1]

    yield connect
    for results in opened:
        await results.close()


@pytest.fixture
async def queues(redis_server: RedisServer, raw: redis.Redis) -> AsyncIterator[OpenQueue]:
    opened: list[ResultQueue] = []

    def connect() -> ResultQueue:
        opened.append(ResultQueue(stream_url(redis_server)))
        return opened[-1]

    yield connect
    for queue in opened:
        await queue.close()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Results]:
    results = SqliteResults(tmp_path / "shoal.db")
    yield results
    await results.close()


def one(key: str = "k1", **changes: Any) -> Batch:
    return Batch(items=[some_item(key, **changes)])


def keys_of(entries: list[StreamEntry]) -> list[str]:
    batches = [entry.content for entry in entries]
    return [item.key for batch in batches if isinstance(batch, Batch) for item in batch.items]


async def fill(results: Results, count: int) -> list[str]:
    keys = [f"k{n}" for n in range(count)]
    for key in keys:
        await results.save(CRAWL, one(key))
    return keys


class TestBound:
    async def test_a_full_stream_is_busy_until_it_is_delivered(
        self, connect: Open, redis_server: RedisServer, raw: redis.Redis, store: Results
    ) -> None:
        results = connect(max=3)
        await fill(results, 3)
        for _ in range(2):
            with pytest.raises(StorageBusy, match="is full: 3 batches wait for `shoal drain`"):
                await results.save(CRAWL, one("k3"))
        assert waiting(raw) == 3
        await deliver_all(stream_url(redis_server), store)
        await results.save(CRAWL, one("k3"))
        await deliver_all(stream_url(redis_server), store)
        assert [item.key for item in await all_items(store)] == ["k0", "k1", "k2", "k3"]

    async def test_what_a_deliverer_holds_still_counts(
        self, connect: Open, queues: OpenQueue
    ) -> None:
        results, queue = connect(max=3), queues()
        await fill(results, 3)
        taken = await queue.take()
        with pytest.raises(StorageBusy):
            await results.save(CRAWL, one())
        await queue.done(taken.entries)
        await results.save(CRAWL, one())

    async def test_it_holds_for_all_workers_together(self, connect: Open, raw: redis.Redis) -> None:
        workers = [connect(max=7) for _ in range(4)]
        saves = [worker.save(CRAWL, one(f"{n}")) for n in range(5) for worker in workers]
        ended = await asyncio.gather(*saves, return_exceptions=True)
        assert [type(error) for error in ended if error] == [StorageBusy] * 13
        assert waiting(raw) == 7

    async def test_a_note_needs_no_room(self, connect: Open, raw: redis.Redis) -> None:
        results = connect(max=1)
        await results.save(CRAWL, one())
        await results.note_run(CRAWL, RunNote("redis://one"))
        assert waiting(raw) == 2

    async def test_another_key_is_another_stream(self, connect: Open, raw: redis.Redis) -> None:
        await connect(key="mine").save(CRAWL, one())
        assert (waiting(raw), raw.xlen("mine")) == (0, 1)


class TestLarge:
    @pytest.fixture(autouse=True)
    def small_entries(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(wire, "ENTRY_BYTES", 2_000)

    async def test_a_large_batch_goes_in_parts(
        self, connect: Open, redis_server: RedisServer, raw: redis.Redis, store: Results
    ) -> None:
        pages = [some_page(attempt=n) for n in range(50)]
        items = [some_item(f"k{n}") for n in range(50)]
        rejected = [some_rejected(data=f"{n}") for n in range(50)]
        await connect().save(CRAWL, Batch(pages, items, rejected))
        entries: Any = raw.xrange(KEY)
        sizes = [len(fields[b"batch"]) for _, fields in entries]
        assert len(sizes) > 10
        assert max(sizes) <= 2_000
        delivered = await deliver_all(stream_url(redis_server), store)
        assert (delivered.pages, delivered.items, delivered.rejected) == (50, 50, 50)
        assert await all_items(store) == items
        assert await store.pages_of(CRAWL, some_page().fingerprint) == pages
        assert [item async for item in store.rejected(CRAWL)] == rejected

    async def test_it_is_kept_as_it_was_asked_for(self, queues: OpenQueue, connect: Open) -> None:
        keep = Keep("always", 5.0)
        await connect().save(CRAWL, Batch(items=[some_item(f"k{n}") for n in range(50)], keep=keep))
        entries = (await queues().take()).entries
        assert len(entries) > 2
        assert {entry.content.keep for entry in entries if isinstance(entry.content, Batch)} == {
            keep
        }

    async def test_an_item_that_is_larger_than_an_entry_goes_alone(
        self, connect: Open, queues: OpenQueue, raw: redis.Redis
    ) -> None:
        large = some_item("large", data=b'{"x":"' + b"x" * 10_000 + b'"}')
        await connect().save(CRAWL, Batch(items=[some_item("a"), large, some_item("b")]))
        assert waiting(raw) > 1
        assert keys_of((await queues().take()).entries) == ["a", "large", "b"]

    async def test_it_needs_room_for_one_entry_and_no_more(
        self, connect: Open, raw: redis.Redis
    ) -> None:
        results = connect(max=2)
        batch = Batch(items=[some_item(f"k{n}") for n in range(50)])
        await results.save(CRAWL, one())
        await results.save(CRAWL, batch)
        in_it = waiting(raw)
        assert in_it > 3
        with pytest.raises(StorageBusy):
            await results.save(CRAWL, batch)
        assert waiting(raw) == in_it


class TestMany:
    async def test_more_than_ten_thousand_are_held_and_done(
        self, queues: OpenQueue, raw: redis.Redis
    ) -> None:
        queue, many = queues(), 10_500
        await queue.take()
        with raw.pipeline(transaction=False) as pipe:
            for _ in range(many):
                pipe.xadd(KEY, {"a": "b"})
            pipe.execute()
        read: Any = raw.xreadgroup(queue_module.GROUP, "gone", {KEY: ">"}, count=many)
        entries = [StreamEntry(identity, CRAWL, Batch()) for identity, _ in read[0][1]]
        await queue.touch(entries)
        assert raw.xpending(KEY, queue_module.GROUP)["consumers"] == [
            {"name": queue._deliverer.encode(), "pending": many}
        ]
        aside = [Garbage(at.id.decode(), "{}", "not ours", 0.0) for at in entries[:20]]
        await queue.put_aside(aside)
        await queue.done(entries)
        assert (waiting(raw), held(raw), len(put_aside(raw))) == (0, 0, 20)

    async def test_garbage_that_cannot_be_put_aside_stays(
        self, queues: OpenQueue, raw: redis.Redis
    ) -> None:
        raw.set(f"{KEY}:garbage", "somebody else's")
        raw.xadd(KEY, {"hello": "world"})
        queue = queues()
        taken = await queue.take()
        with pytest.raises(ConfigError):
            await queue.put_aside(taken.garbage)
        assert (waiting(raw), held(raw)) == (1, 1)


class TestTaking:
    async def test_oldest_first_and_as_it_was(self, connect: Open, queues: OpenQueue) -> None:
        batch = Batch([some_page()], [some_item()], [some_rejected()], Keep("always", 1.5))
        note = RunNote("redis://one", ["a.py:B"], "file:///pages")
        results = connect()
        await results.save("a", batch)
        await results.note_run("b", note)
        taken = await queues().take()
        contents = [(entry.crawl, entry.content) for entry in taken.entries]
        assert contents == [("a", batch), ("b", note)]
        assert taken.waiting == 2

    async def test_nobody_gets_what_another_has(self, connect: Open, queues: OpenQueue) -> None:
        keys = await fill(connect(), 250)
        takes = [(await queue.take()).entries for queue in [queues() for _ in range(4)]]
        assert [key for entries in takes for key in keys_of(entries)] == keys
        assert [len(entries) for entries in takes] == [100, 100, 50, 0]

    async def test_large_ones_are_few(
        self, connect: Open, queues: OpenQueue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(queue_module, "TAKE_BYTES", 30_000)
        for n in range(10):
            await connect().save(CRAWL, one(f"k{n}", data=b'{"x":"' + b"x" * 10_000 + b'"}'))
        queue = queues()
        assert [len((await queue.take()).entries) for _ in range(5)] == [3, 3, 3, 1, 0]

    async def test_what_a_dead_deliverer_held_comes_first(
        self, connect: Open, queues: OpenQueue, raw: redis.Redis
    ) -> None:
        await fill(connect(), 150)
        dead, living = queues(), queues()
        lost = keys_of((await dead.take()).entries)
        assert len(keys_of((await living.take()).entries)) == 50
        assert (await living.take()).entries == []
        age(raw)
        again = await living.take()
        assert keys_of(again.entries) == lost
        assert again.waiting == 150

    async def test_large_ones_of_a_dead_deliverer_are_few_too(
        self,
        connect: Open,
        queues: OpenQueue,
        raw: redis.Redis,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        await fill(connect(), 10)
        await queues().take()
        age(raw)
        monkeypatch.setattr(queue_module, "TAKE_BYTES", 1)
        living = queues()
        assert [len((await living.take()).entries) for _ in range(11)] == [1] * 10 + [0]

    async def test_touched_entries_stay(
        self, connect: Open, queues: OpenQueue, raw: redis.Redis
    ) -> None:
        await fill(connect(), 3)
        slow, other = queues(), queues()
        entries = (await slow.take()).entries
        age(raw)
        await slow.touch(entries)
        assert (await other.take()).entries == []
        await slow.give_back(entries)
        assert len((await other.take()).entries) == 3

    async def test_what_is_done_is_gone(
        self, connect: Open, queues: OpenQueue, raw: redis.Redis
    ) -> None:
        await fill(connect(), 3)
        late, quick = queues(), queues()
        entries = (await late.take()).entries
        age(raw)
        assert len((await quick.take()).entries) == 3
        await late.done(entries)
        assert (waiting(raw), held(raw)) == (0, 0)
        await quick.touch(entries)
        await quick.give_back(entries)
        await quick.done(entries)
        assert (await quick.take()).waiting == 0

    async def test_a_deliverer_that_leaves_is_forgotten(
        self, connect: Open, queues: OpenQueue, raw: redis.Redis
    ) -> None:
        await fill(connect(), 103)
        idle, busy = queues(), queues()
        await idle.done((await idle.take()).entries)
        await busy.take()
        assert len(raw.xinfo_consumers(KEY, "drain")) == 2
        await idle.leave()
        await busy.leave()
        assert [deliverer["pending"] for deliverer in raw.xinfo_consumers(KEY, "drain")] == [3]

    async def test_those_that_died_long_ago_are_forgotten(
        self,
        connect: Open,
        queues: OpenQueue,
        raw: redis.Redis,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        await fill(connect(), 1)
        for _ in range(3):
            await queues().take()
            age(raw)
        monkeypatch.setattr(queue_module, "LONG_DEAD_S", -1.0)
        last = queues()
        await last.done((await last.take()).entries)
        await last.leave()
        assert raw.xinfo_consumers(KEY, "drain") == []


class TestLostSight:
    """Nobody has them and nobody would get them, but for a second look."""

    async def test_a_deliverer_is_deleted(
        self, connect: Open, queues: OpenQueue, raw: redis.Redis
    ) -> None:
        keys = await fill(connect(), 5)
        await queues().take()
        (consumer,) = raw.xinfo_consumers(KEY, "drain")
        raw.xgroup_delconsumer(KEY, "drain", consumer["name"])
        assert keys_of((await queues().take()).entries) == keys

    async def test_the_group_is_deleted(
        self, connect: Open, queues: OpenQueue, raw: redis.Redis
    ) -> None:
        keys = await fill(connect(), 5)
        queue = queues()
        await queue.take()
        raw.xgroup_destroy(KEY, "drain")
        assert keys_of((await queue.take()).entries) == keys

    async def test_the_server_is_emptied(
        self, connect: Open, queues: OpenQueue, raw: redis.Redis
    ) -> None:
        queue = queues()
        await fill(connect(), 2)
        taken = await queue.take()
        raw.flushall()
        await queue.done(taken.entries)
        await fill(connect(), 1)
        assert keys_of((await queue.take()).entries) == ["k0"]


class TestGarbage:
    async def test_is_put_aside_with_its_reason(
        self,
        connect: Open,
        redis_server: RedisServer,
        raw: redis.Redis,
        store: Results,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        nested = b"\x91" * 100_000
        strangers: list[dict[str, str | bytes]] = [
            {"hello": "world"},
            {"crawl": CRAWL},
            {"crawl": b"\xff", "batch": b"\x80"},
            {"crawl": CRAWL, "batch": b"no msgpack \x1b[31m"},
            {"crawl": CRAWL, "batch": msgspec.msgpack.encode({"items": [{"kind": 1}]})},
            {"crawl": CRAWL, "batch": b"\x81\xa1x" + nested},
            {"crawl": CRAWL, "note": b"\x80"},
            {"crawl": CRAWL, "batch": wire.encode(one())[0] + b"more"},
        ]
        results = connect()
        for number, fields in enumerate(strangers):
            await results.save(CRAWL, one(f"k{number}"))
            raw.xadd(KEY, fields)  # type: ignore[arg-type]
        delivered = await deliver_all(stream_url(redis_server), store)
        assert (delivered.items, delivered.garbage, delivered.waiting) == (8, 8, 0)
        assert len(await all_items(store)) == 8
        aside = put_aside(raw)
        assert len(aside) == 8
        assert aside[-1].entry == "hello world"
        assert aside[-1].reason == "it has no field 'crawl'"
        assert all(record.reason for record in aside)
        assert max(len(record.entry) for record in aside) <= 2_000
        assert "8 entries of the stream are no results" in caplog.text
        assert "\x1b" not in caplog.text
        assert (waiting(raw), held(raw)) == (0, 0)

    async def test_what_no_store_takes_holds_up_nothing(
        self, connect: Open, redis_server: RedisServer, raw: redis.Redis, store: Results
    ) -> None:
        unstorable = [
            Batch([some_page(simhash=2**63)]),
            Batch([some_page(started_at=1e300)]),
            one(fingerprint=b"short"),
            one(data=b"no JSON"),
        ]
        for number, batch in enumerate(unstorable):
            raw.xadd(KEY, {"crawl": CRAWL, "batch": msgspec.msgpack.encode(batch)})
            await connect().save(CRAWL, one(f"k{number}"))
        delivered = await deliver_all(stream_url(redis_server), store)
        assert (delivered.items, delivered.garbage, waiting(raw)) == (4, 4, 0)

    async def test_only_the_newest_is_kept(
        self, queues: OpenQueue, raw: redis.Redis, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(queue_module, "GARBAGE_KEPT", 5)
        for number in range(20):
            raw.xadd(KEY, {"number": number})
        queue = queues()
        taken = await queue.take()
        await queue.put_aside(taken.garbage)
        assert [record.entry for record in put_aside(raw)] == [
            f"number {n}" for n in range(19, 14, -1)
        ]

    async def test_once_though_the_answer_was_lost(
        self, queues: OpenQueue, raw: redis.Redis
    ) -> None:
        raw.xadd(KEY, {"hello": "world"})
        queue = queues()
        taken = await queue.take()
        for _ in range(2):
            await queue.put_aside(taken.garbage)
        assert len(put_aside(raw)) == 1


class TestServer:
    async def test_out_of_memory(
        self, connect: Open, redis_server: RedisServer, raw: redis.Redis, store: Results
    ) -> None:
        results = connect()
        await fill(results, 5)
        raw.xadd(KEY, {"hello": "world"})
        raw.config_set("maxmemory", raw.info("memory")["used_memory"])
        try:
            for call in (results.save(CRAWL, one()), results.note_run(CRAWL, RunNote("a"))):
                with pytest.raises(StorageBusy, match="out of memory"):
                    await call
            delivered = await deliver_all(stream_url(redis_server), store)
        finally:
            raw.config_set("maxmemory", 0)
        assert (delivered.items, delivered.garbage) == (5, 1)
        assert len(put_aside(raw)) == 1
        await results.save(CRAWL, one())

    async def test_one_that_evicts_is_refused(self, connect: Open, raw: redis.Redis) -> None:
        raw.config_set("maxmemory-policy", "allkeys-lru")
        try:
            with pytest.raises(ConfigError, match="maxmemory-policy is allkeys-lru"):
                await connect().save(CRAWL, one())
        finally:
            raw.config_set("maxmemory-policy", "noeviction")

    async def test_one_without_a_log_is_warned_of(
        self, connect: Open, caplog: pytest.LogCaptureFixture
    ) -> None:
        await connect().note_run(CRAWL, RunNote("redis://one"))
        (warning,) = [r for r in caplog.records if r.levelno == logging.WARNING]
        assert "keeps no append-only file" in warning.getMessage()

    async def test_something_else_at_the_key(
        self, connect: Open, queues: OpenQueue, raw: redis.Redis
    ) -> None:
        raw.set(KEY, "not a stream")
        for call in (connect().save(CRAWL, one()), queues().take()):
            with pytest.raises(ConfigError, match="'shoal:results' is no stream of results"):
                await call


class TestOnlyForWriting:
    def calls(self, results: Results) -> list[Any]:
        page = some_page().fingerprint
        return [
            anext(results.items(CRAWL)),
            anext(results.rejected(CRAWL)),
            anext(results.signatures(CRAWL)),
            results.history(CRAWL, "Product", "k1"),
            results.count(CRAWL),
            results.pages_of(CRAWL, page),
            results.items_of(CRAWL, page),
            results.rejected_of(CRAWL, page),
            results.mark_near(CRAWL, []),
            results.near_of(CRAWL, page),
            results.prune(0.0),
        ]

    async def test_questions_are_for_the_store(self, connect: Open) -> None:
        results = connect()
        assert not results.readable
        await results.save(CRAWL, one())
        for call in self.calls(results):
            with pytest.raises(ConfigError, match="of the store that `shoal drain` fills"):
                await call

    async def test_nothing_can_be_forgotten(self, connect: Open, raw: redis.Redis) -> None:
        results = connect()
        await results.save(CRAWL, one())
        with pytest.raises(ConfigError, match=r"cannot be forgotten.* take another --name"):
            await results.forget(CRAWL)
        assert waiting(raw) == 1

    async def test_but_the_note_is_there_before_it_is_delivered(self, connect: Open) -> None:
        results = connect()
        assert await results.note_of(CRAWL) is None
        note = RunNote("redis://one", ["a.py:B"])
        await results.note_run(CRAWL, note)
        assert await connect().note_of(CRAWL) == note
        assert await results.note_of("another") is None
        with suppress(ConfigError):
            await results.forget(CRAWL)
        assert await results.note_of(CRAWL) == note
