"""Exits on Redis: what is this backend's alone. Keys, forms of scripts, slots of a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from redis.crc import key_slot

from shoal.core.exit_policy import EXITS_SEEN
from shoal.errors import ConfigError
from shoal.frontier.redis import RedisFrontier
from shoal.frontier.redis.exit_forms import RECORDS
from shoal.frontier.redis.names import EXITS, tag_by_exits
from shoal.frontier.redis.scripts import BY_EXITS, script
from shoal.frontier.values import Verdict
from support.exits import (
    DC,
    LONG_S,
    RES,
    SECOND_HOST,
    ExitClient,
    exits_of,
    laned,
    laned_pages,
    put_pool,
)
from support.frontiers import CRAWL, HOST, Client, open_rules, pages
from support.redis_groups import RedisCluster
from support.redis_servers import RedisServer

ODD_NAMES = ("crawl", "exits", "{a}", "%7Ba%7D", "überall/🐟")


@pytest.fixture
async def frontier(redis_server: RedisServer) -> AsyncIterator[RedisFrontier]:
    redis_server.flush()
    opened = RedisFrontier(redis_server.url)
    yield opened
    await opened.close()


@pytest.fixture
async def on_cluster(redis_cluster: RedisCluster) -> AsyncIterator[RedisFrontier]:
    redis_cluster.flush()
    opened = RedisFrontier(redis_cluster.url)
    yield opened
    await opened.close()


def keys_of(server: RedisServer) -> set[str]:
    with server.client() as raw:
        return {key.decode() for key in raw.scan_iter(count=10_000)}


class TestScripts:
    def test_those_of_crawls_without_pools_know_nothing_of_exits(self) -> None:
        for name in BY_EXITS:
            assert "exit_policy" not in script(name).text
            assert "exit_policy" in script(name, by_exits=True).text

    async def test_a_crawl_without_pools_runs_none_of_the_others(
        self, frontier: RedisFrontier, redis_server: RedisServer
    ) -> None:
        """Also for a worker that knows pools."""
        client = ExitClient(frontier)
        await put_pool(frontier, 3)
        await client.start(*pages(20))
        before = keys_of(redis_server)
        assert await client.work_off() == 20
        shard = (await frontier._crawl(CRAWL)).home
        assert not shard._by_exits
        assert {key for key in keys_of(redis_server) - before if key.startswith(EXITS)} == set()

    async def test_a_worker_learns_that_a_crawl_has_pools(
        self, frontier: RedisFrontier, redis_server: RedisServer
    ) -> None:
        await put_pool(frontier, 1)
        await ExitClient(frontier).begin(*laned_pages(3), *pages(3))
        stranger = Client(RedisFrontier(redis_server.url), "stranger", CRAWL)
        assert sorted(lease.task.url for lease in await stranger.lease(9)) == [
            f"http://{HOST}/{number}" for number in range(3)
        ]
        await stranger.frontier.close()

    async def test_all_that_it_does_at_once_may_have_to_learn_it(
        self, frontier: RedisFrontier, redis_server: RedisServer
    ) -> None:
        await put_pool(frontier, 1)
        await ExitClient(frontier).begin(*laned_pages(3), *pages(40))
        stranger = Client(RedisFrontier(redis_server.url), "stranger", CRAWL)
        await stranger.frontier.stats(CRAWL)  # From here on, the crawl is one that was there.
        leased = await asyncio.gather(*(stranger.lease(2) for _ in range(8)))
        assert any(leased)
        await stranger.frontier.close()

    def test_records_are_only_ever_extended(self) -> None:
        """Servers have them in this order."""
        assert list(RECORDS["pair"]) == [
            *("session", "since", "next_at", "level", "cool_until", "blocked_at", "is_tried"),
            *("good", "bad", "scored_at"),
        ]
        assert list(RECORDS["exit"])[:10] == [
            *("pool", "kind", "country", "is_listed", "session", "next_at", "leased", "faults"),
            *("out_until", "out_at"),
        ]


class TestKeys:
    async def test_a_crawl_that_is_forgotten_leaves_nothing_but_exits(
        self, frontier: RedisFrontier, redis_server: RedisServer
    ) -> None:
        client = ExitClient(frontier)
        await put_pool(frontier, 3)
        await put_pool(frontier, 0, RES)
        before = keys_of(redis_server)
        await client.begin(
            *laned_pages(9),
            *laned_pages(3, pool=RES),
            *(laned(f"{HOST}/c{number}", chain="chain") for number in range(3)),
            *(laned(f"{HOST}/p{number}", priority=number) for number in range(50)),
        )
        leases = await client.take(9)
        await client.blocked(*leases[:3])
        await client.end(leases[3], Verdict.DEAD, reason="bad")
        await frontier.forget(CRAWL)
        left = {key for key in keys_of(redis_server) if not key.startswith(EXITS)}
        left = {key for key in left if not key.endswith((":forgotten", ":restarts"))}
        assert left <= before
        await client.assert_free()

    async def test_of_a_task_that_has_ended_no_block_is_kept(
        self, frontier: RedisFrontier, redis_server: RedisServer
    ) -> None:
        client = ExitClient(frontier)
        await put_pool(frontier, 6, concurrency=1)
        await client.begin(*laned_pages(3))
        await client.blocked(*await client.take())
        assert any(key.endswith(":blocks") for key in keys_of(redis_server))
        leases = await client.take()
        assert {lease.lent.blocks for lease in leases if lease.lent} == {1}
        done, dead, dropped = leases
        await client.good(done)
        await client.end(dead, Verdict.DEAD, reason="bad")
        await client.end(dropped, Verdict.DROPPED, reason="unwanted")
        assert not any(key.endswith(":blocks") for key in keys_of(redis_server))

    async def test_a_pool_is_of_no_crawl(self, frontier: RedisFrontier) -> None:
        """Not even of one with this name."""
        client = ExitClient(frontier, crawl="exits")
        await put_pool(frontier, 2)
        await client.begin(*laned_pages(2))
        await client.take()
        await frontier.forget("exits")
        await client.assert_free()
        assert (await client.pool()).exits == 2


class TestManyExits:
    async def test_those_that_a_host_cannot_use_do_not_stand_before_all_others(
        self, frontier: RedisFrontier
    ) -> None:
        """Nobody uses them, so they are the most rested, and more than are looked at."""
        client = ExitClient(frontier, slots=1000)
        count = 3 * EXITS_SEEN
        await put_pool(frontier, count, pair_interval_s=LONG_S)
        await client.begin(*laned_pages(count), concurrency_per_host=1000)
        first = await client.take(EXITS_SEEN + 50)
        await client.add(*laned_pages(count - len(first), SECOND_HOST, priority=1))
        while others := await client.lease(100):
            assert len({*exits_of(others)}) == len(others)
            first += others
        assert len(first) > count


class TestCluster:
    @pytest.mark.parametrize("name", ODD_NAMES)
    def test_the_tag_lies_in_the_slot_of_the_exits(self, name: str) -> None:
        key = f"shoal:{{{tag_by_exits(name)}}}:crawl"
        assert key_slot(key.encode()) == key_slot(f"{EXITS}pools".encode())

    def test_tags_stay_as_they_are(self) -> None:
        """A version that finds others would not find what this one has queued."""
        assert tag_by_exits(CRAWL) == "crawl/exits/12928"

    async def test_a_crawl_that_is_spread_gets_no_pools(self, on_cluster: RedisFrontier) -> None:
        await on_cluster.start(CRAWL, open_rules())
        with pytest.raises(ConfigError, match="spread over a cluster"):
            await on_cluster.start(CRAWL, open_rules(pools=(DC,)))
        await on_cluster.forget(CRAWL)
        assert (await on_cluster.start(CRAWL, open_rules(pools=(DC,)))).rules.pools == (DC,)

    async def test_one_with_pools_may_lose_them(self, on_cluster: RedisFrontier) -> None:
        client = ExitClient(on_cluster)
        await put_pool(on_cluster, 1)
        await client.begin(*laned_pages(2))
        await on_cluster.start(CRAWL, open_rules())
        assert len(await client.take()) == 2
