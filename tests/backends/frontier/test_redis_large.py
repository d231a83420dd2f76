"""The Redis frontier where there is much of something: what it keeps and reads, now and before."""

from __future__ import annotations

import msgspec
import pytest
import redis

from contract.frontier.many import MANY, lease_all, of_many_priorities
from shoal.core.failures import FailureKind
from shoal.frontier.facts import DEAD_AT_ONCE, MOST_SHAPES
from shoal.frontier.redis.stats import HOST_NUMBERS
from shoal.frontier.values import Control, CrawlState, DeadFilter, Entry, TaskState, Verdict
from support.frontiers import A_MOMENT_S, CRAWL, HOST, Client, entry, outcome, pages
from support.redis_backend import RedisBackend
from support.redis_servers import RedisServer


@pytest.fixture
def raw(redis_server: RedisServer) -> redis.Redis:
    return redis_server.client()


def key_of(raw: redis.Redis, name: str) -> bytes:
    """The key of the only crawl that ends like this."""
    (key,) = raw.keys(f"shoal:*:{name}")
    assert isinstance(key, bytes)
    return key


def calls_of(raw: redis.Redis) -> dict[str, int]:
    """How often each command was called, by scripts too."""
    return {name: stats["calls"] for name, stats in raw.info("commandstats").items()}


class TestShapes:
    async def test_a_page_with_thousands_of_new_ones_has_room_made_once(
        self, on_redis: RedisBackend, raw: redis.Redis
    ) -> None:
        """To look through what is kept for each of them would keep the whole fleet waiting."""
        client = on_redis.client()
        await client.start(*pages(2), max_pages_per_shape=5)

        def links(number: int, each: int) -> list[Entry]:
            return [
                msgspec.structs.replace(entry(f"{HOST}/{shape}/{n}"), shape=f"/{shape}/N")
                for shape in range(number, number + MOST_SHAPES)
                for n in range(each)
            ]

        await client.end(await client.lease_one(), follow_ups=links(0, 2))
        before = calls_of(raw).get("cmdstat_hgetall", 0)
        await client.end(await client.lease_one(), follow_ups=links(MOST_SHAPES, 1))
        assert calls_of(raw)["cmdstat_hgetall"] - before < 10
        assert raw.hlen(key_of(raw, f"alike:{HOST}")) <= MOST_SHAPES + 1
        assert (await client.stats()).added == 2 + 3 * MOST_SHAPES


class TestPriorities:
    async def test_a_host_keeps_few_of_many(self, on_redis: RedisBackend, raw: redis.Redis) -> None:
        """Every step reads and writes what it keeps: so that must not grow with what waits."""
        client = on_redis.client()
        await client.start(*of_many_priorities(0, 1), concurrency_per_host=MANY)
        sizes = [raw.hstrlen(key_of(raw, "hosts"), HOST)]
        for _ in range(5):
            await client.lease(100)
            sizes.append(raw.hstrlen(key_of(raw, "hosts"), HOST))
        assert max(sizes) < 500
        assert raw.zcard(key_of(raw, f"lower:{HOST}")) > MANY - 600

    async def test_a_host_of_an_earlier_version_had_all(
        self, on_redis: RedisBackend, raw: redis.Redis
    ) -> None:
        client = on_redis.client()
        entries = of_many_priorities(-MANY, 1)
        await client.start(*entries, concurrency_per_host=2 * MANY)
        await client.control(Control.SEAL)
        self.pack_as_before(raw, [each.task.priority for each in entries])
        assert (await client.record(entries[MANY // 2])).task.priority == -MANY // 2
        others = [entry(f"{HOST}/{n}!", priority=n) for n in (7, -(2**31) + 1)]
        await client.add(*others)
        leases = await lease_all(client)
        found = [lease.task.priority for lease in leases]
        assert len(found) == MANY + 2
        assert found == sorted(found, reverse=True)
        await client.finish(*map(outcome, leases))
        assert (await client.stats()).state is CrawlState.FINISHED

    async def test_a_crawl_of_an_earlier_version_is_forgotten(
        self, on_redis: RedisBackend, raw: redis.Redis
    ) -> None:
        client = on_redis.client()
        entries = of_many_priorities(0, 1)[:2_000]
        await client.start(*entries)
        self.pack_as_before(raw, [each.task.priority for each in entries])
        await client.frontier.forget(CRAWL)
        assert raw.keys("shoal:*:q:*") == raw.keys("shoal:*:lower:*") == []

    def pack_as_before(self, raw: redis.Redis, priorities: list[int]) -> None:
        """As it was: all priorities with the host, the highest first."""
        hosts = key_of(raw, "hosts")
        packed = raw.hget(hosts, HOST)
        assert isinstance(packed, bytes)
        numbers = msgspec.msgpack.decode(packed)[: len(HOST_NUMBERS)]
        before = [*numbers, *sorted(priorities, reverse=True)]
        raw.hset(hosts, HOST, msgspec.msgpack.encode(before))
        raw.unlink(key_of(raw, f"lower:{HOST}"))


class TestLeases:
    async def test_all_get_time_on_a_new_server(
        self, on_redis: RedisBackend, raw: redis.Redis
    ) -> None:
        client = on_redis.client()
        await client.start(*pages(MANY), concurrency_per_host=MANY, lease_s=30.0)
        leases = await lease_all(client)
        await on_redis.advance(31.0)
        raw.script_flush()
        assert await client.lease() == []
        assert await client.renew(*leases) == []

    async def test_of_answers_that_were_lost(self, on_redis: RedisBackend) -> None:
        """As many as one client can be unsure of, and more."""
        client = on_redis.client()
        await client.start(*pages(MANY), concurrency_per_host=MANY)
        leases = await lease_all(client)
        (shard,) = (await on_redis.frontier._crawl(CRAWL)).shards  # type: ignore[attr-defined]
        shard._unsure = [lease.token for lease in leases]
        assert len((await client.ask(1)).leases) == 1
        assert await client.renew(*leases) == leases


class TestHolding:
    """A suspect is for a worker that holds nothing. To know that, no lease has to be looked at."""

    async def start(self, client: Client) -> None:
        """Two pages, of which two workers died with one, and many that others hold."""
        await client.start(entry("s.example/"), max_losses=9)
        for _ in range(2):
            await client.lease_one()
            await client.frontier.release(CRAWL, client.worker)
        await client.add(*pages(50))

    async def test_no_lease_is_read(self, on_redis: RedisBackend, raw: redis.Redis) -> None:
        client, other = on_redis.client(), on_redis.another("other")
        await self.start(client)
        assert len(await other.lease(16)) == 16
        raw.config_resetstat()
        (lease,) = await client.lease(1)
        assert lease.alone
        assert await other.lease(1) == []
        assert not {"cmdstat_hvals", "cmdstat_hgetall", "cmdstat_hscan"} & calls_of(raw).keys()

    @pytest.mark.parametrize("end", ["finished", "given back", "expired", "released", "undone"])
    async def test_who_holds_nothing_any_more_gets_it(
        self, on_redis: RedisBackend, raw: redis.Redis, end: str
    ) -> None:
        client = on_redis.client()
        await self.start(client)
        leases = await client.lease(16)
        assert len(leases) == 16
        if end == "finished":
            await client.finish(*map(outcome, leases))
        elif end == "given back":
            await client.finish(*(outcome(at, Verdict.RETURNED) for at in leases))
        elif end == "expired":
            await on_redis.advance(31.0)
        elif end == "released":
            await client.frontier.release(CRAWL, client.worker)
        else:
            (shard,) = (await on_redis.frontier._crawl(CRAWL)).shards  # type: ignore[attr-defined]
            shard._unsure = [lease.token for lease in leases]
        while not (taken := await client.lease(50))[0].alone:
            await client.finish(*map(outcome, taken))
        (suspect,) = taken
        assert raw.hgetall(key_of(raw, "holding")) == {b"worker": b"1"}
        await on_redis.advance(A_MOMENT_S)
        await client.end(suspect)
        assert raw.keys("shoal:*:holding") == []


WITHOUT_KIND = """
local values = cmsgpack.unpack(redis.call('HGET', KEYS[1], ARGV[1]))
values[6] = nil
redis.call('HSET', KEYS[1], ARGV[1], cmsgpack.pack(values))
"""


class TestDeadOfAnEarlierVersion:
    async def test_are_of_other_kinds(self, on_redis: RedisBackend, raw: redis.Redis) -> None:
        client = on_redis.client()
        await client.start(*pages(2), concurrency_per_host=2)
        first, second = await client.lease(2)
        for lease in (first, second):
            await client.end(lease, Verdict.DEAD, kind=FailureKind.TLS, reason="as it was")
        raw.eval(WITHOUT_KIND, 1, key_of(raw, "dead"), first.fingerprint)
        other = DeadFilter(kind=FailureKind.OTHER)
        (dead,) = await client.frontier.dead(CRAWL, 9, None, other)
        assert (dead.fingerprint, dead.kind) == (first.fingerprint, FailureKind.OTHER)
        assert dead.reason == "as it was"
        assert await client.frontier.retry_dead(CRAWL, other) == 1
        assert await client.state(second) is TaskState.DEAD

    async def test_are_the_oldest_and_are_walked_over(
        self, on_redis: RedisBackend, raw: redis.Redis
    ) -> None:
        count = 2 * DEAD_AT_ONCE + 30
        client = on_redis.client()
        await client.start(*pages(count), concurrency_per_host=count)
        leases = await client.lease(count)
        await client.finish(*(outcome(lease, Verdict.DEAD) for lease in leases))
        newest = leases[count // 2].fingerprint
        moments = {lease.fingerprint: 0 for lease in leases if lease.fingerprint != newest}
        raw.zadd(key_of(raw, "died"), moments)
        listed = [record.fingerprint for record in await client.frontier.dead(CRAWL, count)]
        assert listed == [newest, *sorted(moments, reverse=True)]
        walked, after = [], None
        while page := await client.frontier.dead(CRAWL, 7, after):
            walked += [record.fingerprint for record in page]
            after = page[-1].place
        assert walked == listed
        assert await client.frontier.retry_dead(CRAWL) == count
