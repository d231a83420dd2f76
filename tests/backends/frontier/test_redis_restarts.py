"""Redis is killed, restarted, emptied, or forgets its scripts, in the middle of a crawl."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from shoal.errors import StorageBusy, StorageFailed, UnknownCrawl
from shoal.frontier.redis.scripts import SCRIPTS, script
from shoal.frontier.values import Ask, CrawlState, Verdict
from support.frontiers import CRAWL, Client, entry, open_rules, outcome, pages, pulse
from support.redis_backend import RedisBackend
from support.redis_servers import RedisServer
from support.server_process import free_port

Call = Callable[[Client], Awaitable[object]]
CALLS: list[Call] = [
    lambda client: client.ask(),
    lambda client: client.finish(),
    lambda client: client.renew(),
    lambda client: client.stats(),
    lambda client: client.add(*pages(1)),
    lambda client: client.frontier.exchange(CRAWL, [], Ask("worker", 1)),
    lambda client: client.frontier.beat(CRAWL, pulse()),
    lambda client: client.frontier.robots(CRAWL, "a.example"),
    lambda client: client.frontier.hosts(CRAWL, 10),
    lambda client: client.frontier.workers(CRAWL),
    lambda client: client.frontier.find(CRAWL, entry("a.example/0")),
    lambda client: client.frontier.dead(CRAWL, 10),
    lambda client: client.frontier.retry_dead(CRAWL),
    lambda client: client.frontier.holders(CRAWL),
    lambda client: client.frontier.release(CRAWL, "worker"),
]
ALMOST_ALL = [call for number, call in enumerate(CALLS) if number != 4]


@pytest.fixture(scope="module")
def durable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    folder = Path(tmp_path_factory.mktemp("durable"))
    with RedisServer(folder, "--appendonly", "yes", "--appendfsync", "always") as server:
        yield server


@pytest.fixture
async def backend(durable: RedisServer) -> AsyncIterator[RedisBackend]:
    durable.client().flushall()
    backend = RedisBackend(durable.url)
    yield backend
    await backend.check()
    await backend.close()


@asynccontextmanager
async def knowing(backend: RedisBackend) -> AsyncIterator[Client]:
    """A client that has worked for the crawl."""
    client = backend.another("knowing")
    await client.start(*pages(3))
    await client.lease_one()
    yield client


async def restarted(server: RedisServer, client: Client) -> None:
    """Kill the server and start it again. The client notices that it was away."""
    server.kill()
    with pytest.raises(StorageBusy):
        await client.stats()
    server.start()


class TestKilled:
    async def test_nothing_is_lost(self, backend: RedisBackend, durable: RedisServer) -> None:
        client = backend.client()
        await client.start(*pages(6), rate="2/s", concurrency_per_host=4)
        done = await client.lease_one()
        await client.end(done, follow_ups=[entry("b.example/0", priority=5)])
        await backend.advance(1.0)
        delayed, held = await client.lease_one(), await client.lease_one()
        await client.end(delayed, Verdict.RETRY, retry_in_s=60.0)
        await client.frontier.beat(CRAWL, pulse())
        before, hosts = await client.snapshot(), await client.frontier.hosts(CRAWL, 9)
        await restarted(durable, client)
        assert await client.snapshot() == before
        assert await client.frontier.hosts(CRAWL, 9) == hosts
        assert await client.renew(held) == []
        await client.end(held)
        assert (await client.add(*pages(6))).added == 0
        await backend.advance(60.0)
        assert await client.lease_one() != held

    async def test_the_epoch_changes(self, backend: RedisBackend, durable: RedisServer) -> None:
        first, second, third = backend.client(), backend.another(), backend.another()
        await first.start(*pages(1))
        epochs = {(await client.ask(0)).epoch for client in (first, second, third)}
        assert len(epochs) == 1
        await restarted(durable, first)
        assert (await second.stats()).added == 1, "it is the first to meet the new server"
        after = {(await client.ask(0)).epoch for client in (first, second, third)}
        assert len(after) == 1
        assert not after & epochs

    async def test_the_epoch_changes_for_every_crawl(
        self, backend: RedisBackend, durable: RedisServer
    ) -> None:
        clients = [backend.another(crawl=name) for name in ("one", "two")]
        for client in clients:
            await client.start(*pages(1))
        before = [(await client.ask(0)).epoch for client in clients]
        await restarted(durable, clients[0])
        await clients[0].ask(0)
        assert (await clients[1].ask(0)).epoch != before[1]

    async def test_leases_get_time_to_be_renewed(
        self, backend: RedisBackend, durable: RedisServer
    ) -> None:
        client, other = backend.client(), backend.another()
        await client.start(*pages(1), lease_s=30.0)
        lease = await client.lease_one()
        await backend.advance(40.0)
        await restarted(durable, client)
        assert await other.lease() == []
        assert await client.renew(lease) == []
        await backend.advance(31.0)
        assert len(await other.lease()) == 1


class TestTakenOver:
    async def test_a_master_that_comes_back_and_knows_the_scripts(
        self, on_redis: RedisBackend, redis_server: RedisServer
    ) -> None:
        """Two failovers in a row: it was a replica in between."""
        client, other = on_redis.client(), on_redis.another()
        await client.start(*pages(3))
        before = {(await at.ask(0)).epoch for at in (client, other, client)}
        assert len(before) == 1
        with redis_server.client() as raw:
            raw.replicaof("127.0.0.1", str(free_port()))  # There is nobody: it keeps what it has.
            raw.replicaof("NO", "ONE")
            digests = [script(name).digest for name in SCRIPTS]
            assert all(raw.script_exists(*digests)), "by this nobody would notice"
        after = {(await at.ask(0)).epoch for at in (client, other, client)}
        assert len(after) == 1
        assert not after & before

    async def test_who_may_not_ask_for_it_works_all_the_same(
        self, on_redis: RedisBackend, redis_server: RedisServer
    ) -> None:
        redis_server.cli("ACL", "SETUSER", "few", "on", "nopass", "~*", "+@all", "-info")
        address = redis_server.url.replace("://", "://few:x@")
        few = RedisBackend(address)
        client = few.client()
        await client.start(*pages(2))
        epochs = {(await client.ask(1)).epoch for _ in range(2)}
        assert len(epochs) == 1
        await few.close()


class TestScripts:
    async def test_they_are_forgotten_again_and_again(
        self, backend: RedisBackend, durable: RedisServer
    ) -> None:
        client = backend.client()
        with durable.client() as raw:
            raw.script_flush()
            await client.start(*pages(3))
            for _ in range(3):
                raw.script_flush()
                lease = await client.lease_one()
                raw.script_flush()
                await client.renew(lease)
                raw.script_flush()
                await client.end(lease)
        assert (await client.stats()).done == 3


class TestEmptied:
    @pytest.mark.parametrize("call", range(len(CALLS)))
    async def test_who_knew_the_crawl_says_so(
        self, on_redis: RedisBackend, redis_server: RedisServer, call: int
    ) -> None:
        async with knowing(on_redis) as client:
            redis_server.cli("FLUSHALL")
            redis_server.cli("SCRIPT", "FLUSH")
            for _ in range(2):
                with pytest.raises(StorageFailed) as raised:
                    await CALLS[call](client)
        assert f"127.0.0.1:{redis_server.port}" in str(raised.value)
        assert f"lost crawl '{CRAWL}'" in str(raised.value)
        assert await on_redis.open_another().crawls() == []

    async def test_restarted_without_its_data(
        self, on_redis: RedisBackend, redis_server: RedisServer
    ) -> None:
        async with knowing(on_redis) as client:
            await restarted(redis_server, client)
            with pytest.raises(StorageFailed, match="lost crawl 'crawl'"):
                await client.ask()

    async def test_who_did_not_know_it_finds_none(self, on_redis: RedisBackend) -> None:
        client = on_redis.client()
        for call in ALMOST_ALL:
            with pytest.raises(UnknownCrawl):
                await call(client)

    async def test_it_can_be_started_over(
        self, on_redis: RedisBackend, redis_server: RedisServer
    ) -> None:
        async with knowing(on_redis) as client:
            redis_server.cli("FLUSHALL")
            with pytest.raises(StorageFailed):
                await client.ask()
            assert (await client.start()).state is CrawlState.RUNNING
            assert (await client.ask()).leases == []


class TestForgotten:
    """What somebody wanted gone is not lost."""

    async def test_by_another_client(self, on_redis: RedisBackend) -> None:
        async with knowing(on_redis) as client:
            await on_redis.frontier.forget(CRAWL)
            for call in ALMOST_ALL:
                with pytest.raises(UnknownCrawl):
                    await call(client)

    async def test_twice(self, on_redis: RedisBackend) -> None:
        async with knowing(on_redis) as client:
            for _ in range(2):
                await on_redis.frontier.forget(CRAWL)
                await on_redis.frontier.start(CRAWL, open_rules())
            await on_redis.frontier.forget(CRAWL)
            with pytest.raises(UnknownCrawl):
                await client.ask()

    async def test_and_started_over(self, on_redis: RedisBackend) -> None:
        async with knowing(on_redis) as client:
            epoch = (await client.ask(0)).epoch
            (lease,) = await client.lease()
            await on_redis.frontier.forget(CRAWL)
            await on_redis.client().start(*pages(1))
            assert await client.finish(outcome(lease)) == [lease]
            assert (await client.ask(0)).epoch != epoch
            assert (await client.stats()).waiting == 1
