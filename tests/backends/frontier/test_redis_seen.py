"""Known URLs on Redis: exact, in Bloom filters that grow, and for a time only."""

from __future__ import annotations

import random

import pytest
import redis

from shoal.config import Rules
from shoal.core.task import Task
from shoal.drivers.redis.scripts import Scripts
from shoal.frontier.redis import scripts
from shoal.frontier.redis.rules import numbers_of
from shoal.frontier.values import Control, CrawlState, Entry, Verdict
from support.frontiers import CRAWL, Client, entry, outcome, pages
from support.redis_backend import RedisBackend
from support.redis_servers import RedisServer

FIRST_LAYER = 5 * 2**10 - 64
BITS = numbers_of(Rules(), shards=1)["bloom_bits"] / 1000
LAYERS = [int(2**layer * FIRST_LAYER * 8 / BITS) for layer in range(3)]
"""How many fit into such layers, at the default error rate."""
SPAN_S = 400.0


@pytest.fixture
def small_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scripts, "BLOOM_FIRST", FIRST_LAYER)
    with_small_layers = Scripts("shoal.frontier.redis", scripts._policy)
    monkeypatch.setattr(scripts, "_scripts", with_small_layers)


@pytest.fixture
def raw(redis_server: RedisServer) -> redis.Redis:
    return redis_server.client()


def unlike(count: int, seed: int = 0) -> list[Entry]:
    """So many tasks that have nothing in common."""
    numbers = random.Random(seed)
    task = Task(url="http://a.example/", site="a.example")
    return [Entry(numbers.randbytes(8), task) for _ in range(count)]


async def added(client: Client, entries: list[Entry]) -> int:
    """Add them in batches. Returns how many were new."""
    total = 0
    for first in range(0, len(entries), 500):
        total += (await client.add(*entries[first : first + 500])).added
    return total


def keys(raw: redis.Redis, pattern: str) -> list[bytes]:
    return sorted(raw.scan_iter(f"shoal:{{{CRAWL}}}:*:{pattern}"))


def memory(raw: redis.Redis, key: bytes) -> int:
    return raw.memory_usage(key, samples=0) or 0


class TestExact:
    async def test_each_is_taken_once(self, on_redis: RedisBackend) -> None:
        client = on_redis.client()
        await client.start()
        entries = unlike(5000)
        assert await added(client, entries) == 5000
        assert await added(client, entries) == 0
        stats = await client.stats()
        assert (stats.added, stats.duplicates, stats.bloom) == (5000, 5000, False)

    async def test_memory(self, on_redis: RedisBackend, raw: redis.Redis) -> None:
        client = on_redis.client()
        await client.start()
        await added(client, unlike(5000))
        (key,) = keys(raw, "seen:*")
        assert memory(raw, key) <= 60 * 5000


@pytest.mark.usefixtures("small_layers")
class TestBloom:
    async def test_layers_fill_and_no_known_url_is_taken_for_a_new_one(
        self, on_redis: RedisBackend, raw: redis.Redis
    ) -> None:
        client = on_redis.client()
        stats = await client.start(seen="bloom")
        assert not stats.bloom
        entries = unlike(sum(LAYERS))
        new = await added(client, entries)
        assert (await client.stats()).bloom
        assert sum(LAYERS) * 0.999 <= new <= sum(LAYERS)
        assert await added(client, entries) == 0
        layers = keys(raw, "bloom:0:*")
        assert len(layers) == len(LAYERS)
        for key, count in zip(layers, LAYERS, strict=True):
            assert memory(raw, key) <= 2.5 * count
        assert keys(raw, "seen:*") == []

    @pytest.mark.parametrize("error", [0.001, 0.02])
    async def test_the_error_rate_is_kept_when_layers_are_full(
        self, on_redis: RedisBackend, error: float
    ) -> None:
        client = on_redis.client()
        await client.start(seen="bloom", seen_error=error)
        await added(client, unlike(sum(LAYERS)))
        others = unlike(20_000, seed=1)
        mistaken = len(others) - await added(client, others)
        assert 0 < mistaken <= error * len(others)

    async def test_a_smaller_error_rate_takes_more_bits(
        self, on_redis: RedisBackend, raw: redis.Redis
    ) -> None:
        client = on_redis.client()
        await client.start(seen="bloom", seen_error=1e-9)
        assert await added(client, unlike(LAYERS[0])) == LAYERS[0]
        assert len(keys(raw, "bloom:0:*")) == 2

    async def test_auto_is_exact_at_first(
        self, on_redis: RedisBackend, raw: redis.Redis, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("shoal.frontier.redis.rules.BLOOM_AUTO_FROM", 1000)
        client = on_redis.client()
        await client.start(seen="auto")
        entries = unlike(1200)
        assert await added(client, entries[:1000]) == 1000
        assert not (await client.stats()).bloom
        await added(client, entries[1000:])
        assert (await client.stats()).bloom
        (key,) = keys(raw, "seen:*")
        assert raw.scard(key) == 1000
        assert await added(client, entries) == 0

    @pytest.mark.parametrize(
        "rules", [{"seen": "exact"}, {"seen": "auto"}, {"seen": "bloom", "seen_error": 0.1}]
    )
    async def test_other_rules_forget_nothing(
        self, on_redis: RedisBackend, rules: dict[str, str]
    ) -> None:
        """A crawl that is started again takes the rules of that day."""
        client = on_redis.client()
        await client.start(seen="bloom")
        entries = unlike(6000)
        await added(client, entries[:3000])
        await client.start(**rules)
        assert await added(client, entries[:3000]) == 0
        await added(client, entries[3000:])
        await client.start(seen="bloom")
        assert await added(client, entries) == 0


class TestForATime:
    @pytest.mark.parametrize("seen", ["exact", "bloom"])
    @pytest.mark.parametrize("quarter", [0.0, 0.125, 0.2499])
    async def test_a_url_is_new_again_in_time(
        self, on_redis: RedisBackend, seen: str, quarter: float
    ) -> None:
        """Not before the span is over, and not much later."""
        client = on_redis.client()
        on_redis.clock.now = SPAN_S * (1000 + quarter)
        await client.start(*pages(3), seen=seen, seen_for="400s")
        await on_redis.advance(SPAN_S - 0.01)
        assert (await client.add(*pages(3))).added == 0
        await on_redis.advance(SPAN_S / 4 + 0.02)
        assert (await client.add(*pages(3))).added == 3
        assert (await client.add(*pages(3))).added == 0

    async def test_one_that_is_met_again_and_again_is_forgotten_too(
        self, on_redis: RedisBackend
    ) -> None:
        client = on_redis.client()
        await client.start(*pages(1), seen_for="400s")
        taken = 0
        for _ in range(40):
            await on_redis.advance(SPAN_S / 8)
            taken += (await client.add(*pages(1))).added
        assert taken == 4

    @pytest.mark.parametrize("seen", ["exact", "bloom"])
    async def test_what_is_remembered_goes_by_itself(
        self, on_redis: RedisBackend, raw: redis.Redis, seen: str
    ) -> None:
        client = on_redis.client()
        await client.start(*pages(3), seen=seen, seen_for="400s")
        remembered = keys(raw, "seen:*") + keys(raw, "bloom:*")
        assert len(remembered) == (1 if seen == "exact" else 2)
        for key in remembered:
            assert SPAN_S < raw.ttl(key) <= 1.25 * SPAN_S + 1

    async def test_seeds_from_before_the_start_are_known(
        self, on_redis: RedisBackend, raw: redis.Redis
    ) -> None:
        client = on_redis.client()
        await client.add(*pages(3))
        await client.start(seen_for="400s")
        assert (await client.add(*pages(3))).added == 0
        await on_redis.advance(1.25 * SPAN_S)
        assert (await client.add(*pages(3))).added == 3
        assert all(raw.ttl(key) > 0 for key in keys(raw, "seen:*"))


class TestTwiceAtOnce:
    """A URL that is new again while it is still in the queue: two tasks that look the same."""

    @pytest.fixture
    async def client(self, on_redis: RedisBackend) -> Client:
        client = on_redis.client()
        await client.start(entry("a.example/x"), seen_for="400s", lease_s=10_000.0)
        await on_redis.advance(2 * SPAN_S)
        assert (await client.add(entry("a.example/x"))).added == 1
        return client

    async def test_leased(self, client: Client) -> None:
        one, other = await client.lease(2)
        assert one.fingerprint == other.fingerprint
        assert one.token != other.token
        assert await client.renew(one, other) == []
        await client.end(one)
        assert (await client.stats()).leased == 1
        assert await client.renew(one, other) == [one]
        await client.end(other)
        assert (await client.stats()).done == 2

    async def test_delayed(self, client: Client, on_redis: RedisBackend) -> None:
        leases = await client.lease(2)
        await client.finish(*(outcome(lease, Verdict.RETRY, retry_in_s=5.0) for lease in leases))
        assert (await client.stats()).delayed == 2
        await on_redis.advance(5.0)
        assert len(await client.lease(2)) == 2

    async def test_dead(self, client: Client) -> None:
        leases = await client.lease(2)
        await client.finish(*(outcome(lease, Verdict.DEAD, reason="gone") for lease in leases))
        stats = await client.stats()
        assert (stats.dead, stats.dropped) == (1, 1)
        (record,) = await client.frontier.dead(CRAWL, 10)
        assert record.reason == "gone"
        assert await client.frontier.retry_dead(CRAWL) == 1
        assert await client.work_off() == 1

    async def test_dropped(self, client: Client) -> None:
        leases = await client.lease(2)
        await client.finish(*(outcome(lease, Verdict.DROPPED, reason="r") for lease in leases))
        assert (await client.stats()).dropped == 2

    async def test_waiting_in_a_chain(self, on_redis: RedisBackend) -> None:
        """It waits once; the other one is dropped."""
        client = on_redis.client()
        steps = [entry(f"a.example/{number}", chain="c") for number in range(3)]
        await client.start(*steps, seen_for="400s", lease_s=10_000.0)
        await on_redis.advance(2 * SPAN_S)
        assert (await client.add(*steps)).added == 3
        stats = await client.stats()
        assert (stats.added, stats.waiting, stats.dropped) == (6, 4, 2)
        await client.control(Control.SEAL)
        assert await client.work_off() == 4
        assert (await client.stats()).state is CrawlState.FINISHED

    async def test_suspected(self, client: Client) -> None:
        for _ in range(2):
            await client.lease(2)
            assert await client.frontier.release(CRAWL, client.worker) == 2
        for _ in range(2):
            lease = await client.lease_one(2)
            assert lease.alone
            await client.end(lease)
        assert (await client.stats()).done == 2
