"""Servers that are away, full, silent, or not fit for a crawl."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
from aiohttp import web

from shoal.errors import ConfigError, ShoalError, StorageBusy, StorageFailed
from shoal.frontier.redis import RedisFrontier
from shoal.frontier.values import Ask, Control, Verdict
from support.frontiers import CRAWL, Client, entry, open_rules, outcome, pages, pulse
from support.redis_backend import RedisBackend
from support.redis_servers import RedisServer
from support.server_process import free_port
from support.tcp_proxy import TcpProxy
from support.until import until_now

NO_AOF = "keeps no append-only file"


@pytest.fixture
def raw(redis_server: RedisServer) -> redis.Redis:
    return redis_server.client()


async def error_of(address: str) -> ShoalError:
    """What a frontier at an address says to everything."""
    frontier = RedisFrontier(address)
    client = Client(frontier, "worker", CRAWL)
    try:
        with pytest.raises(ShoalError) as raised:
            await client.start()
        for ask in (client.stats, client.ask, client.finish, client.renew, frontier.crawls):
            with pytest.raises(type(raised.value)):
                await ask()
    finally:
        await frontier.close()
    assert len(str(raised.value).splitlines()) == 1
    return raised.value


class TestAway:
    async def test_nobody_is_there(self) -> None:
        port = free_port()
        error = await error_of(f"redis://127.0.0.1:{port}")
        assert isinstance(error, StorageBusy)
        assert f"redis://127.0.0.1:{port}" in str(error)

    async def test_no_such_host(self) -> None:
        error = await error_of("redis://host.invalid")
        assert isinstance(error, StorageBusy)

    @pytest.mark.parametrize("scheme", ["redis+cluster", "redis+sentinel"])
    async def test_nobody_of_several_is_there(self, scheme: str) -> None:
        hosts = f"127.0.0.1:{free_port()},127.0.0.1:{free_port()}"
        error = await error_of(f"{scheme}://{hosts}{'/service' * (scheme == 'redis+sentinel')}")
        assert isinstance(error, StorageBusy)
        assert hosts in str(error)

    async def test_a_cut_connection(self, redis_server: RedisServer) -> None:
        with TcpProxy(redis_server.port) as proxy:
            frontier = RedisFrontier(f"redis://127.0.0.1:{proxy.port}")
            client = Client(frontier, "worker", CRAWL)
            await client.start(*pages(2))
            proxy.cut()
            for _ in range(3):
                with pytest.raises(StorageBusy):
                    await client.ask()
            proxy.heal()
            assert len(await client.lease(5)) == 2
            await frontier.close()


class TestSilent:
    """The server has the connection, and does not answer."""

    async def test_calls_end_and_go_on_later(
        self, redis_server: RedisServer, on_redis: RedisBackend, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("shoal.drivers.redis.link.ANSWER_S", 0.2)
        monkeypatch.setattr("shoal.drivers.redis.link.CONNECT_S", 0.2)
        client = on_redis.another("hasty")
        await client.start(*pages(4))
        lease = await client.lease_one()
        redis_server.pause()
        try:
            for call in (client.stats(), client.renew(lease), client.add(*pages(1)), client.ask(3)):
                with pytest.raises(StorageBusy, match=f"127.0.0.1:{redis_server.port}"):
                    await call
        finally:
            redis_server.resume()
        assert await client.renew(lease) == []
        await client.end(lease)
        assert await client.work_off() == 3
        assert (await client.stats()).lost == 0


class TestStranger:
    async def test_a_web_server(self) -> None:
        runner = web.AppRunner(web.Application())
        await runner.setup()
        port = free_port()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        error = await error_of(f"redis://127.0.0.1:{port}")
        await runner.cleanup()
        assert isinstance(error, StorageFailed | ConfigError)
        assert f"127.0.0.1:{port}" in str(error)

    async def test_a_sentinel_that_does_not_know_the_service(self, tmp_path: Path) -> None:
        with RedisServer(tmp_path, "--sentinel") as sentinel:
            error = await error_of(f"redis+sentinel://127.0.0.1:{sentinel.port}/nobody")
        assert "nobody" in str(error)

    async def test_a_cluster_that_is_none(self, redis_server: RedisServer) -> None:
        error = await error_of(f"redis+cluster://127.0.0.1:{redis_server.port}")
        assert isinstance(error, ConfigError)
        assert "is no cluster" in str(error)

    async def test_a_database_that_is_not_there(self, redis_server: RedisServer) -> None:
        error = await error_of(f"redis://127.0.0.1:{redis_server.port}/99")
        assert isinstance(error, ConfigError)

    async def test_another_database(self, redis_server: RedisServer, raw: redis.Redis) -> None:
        raw.flushall()
        frontier = RedisFrontier(f"redis://127.0.0.1:{redis_server.port}/3")
        await frontier.start(CRAWL, open_rules())
        await frontier.close()
        assert raw.dbsize() == 0


class TestMemory:
    @pytest.fixture
    async def full(self, on_redis: RedisBackend, raw: redis.Redis) -> AsyncIterator[Client]:
        """A client of a server that is out of memory."""
        client = on_redis.client()
        await client.start(*pages(50))
        raw.config_set("maxmemory", raw.info("memory")["used_memory"])
        yield client
        raw.config_set("maxmemory", 0)

    async def test_nothing_more_is_taken_in(self, full: Client, raw: redis.Redis) -> None:
        for call in (full.add(entry("b.example/")), full.frontier.start("other", open_rules())):
            with pytest.raises(StorageBusy, match="out of memory"):
                await call
        raw.config_set("maxmemory", 0)
        assert (await full.add(entry("b.example/"))).added == 1

    async def test_work_goes_on(self, full: Client) -> None:
        leases = await full.lease(10)
        assert len(leases) == 10
        assert await full.renew(*leases) == []
        await full.end(leases[0], follow_ups=[entry("b.example/found")])
        await full.end(leases[1], Verdict.RETRY, retry_in_s=10.0)
        await full.end(leases[2], Verdict.DEAD, reason="bad")
        await full.end(leases[3], Verdict.DROPPED, reason="unwanted")
        done = [outcome(lease) for lease in leases[4:]]
        stale, grant = await full.frontier.exchange(CRAWL, done, Ask(full.worker, 5))
        assert (stale, len(grant.leases)) == ([], 5)
        assert await full.frontier.beat(CRAWL, pulse()) is False
        await full.control(Control.PAUSE)
        await full.control(Control.RESUME)
        assert await full.frontier.retry_dead(CRAWL) == 1
        stats = await full.stats()
        assert (stats.done, stats.added, stats.leased) == (7, 51, 5)

    async def test_also_when_the_scripts_are_forgotten(
        self, full: Client, raw: redis.Redis
    ) -> None:
        """As after a restart, when the server is as full as it was before."""
        raw.script_flush()
        assert len(await full.lease(2)) == 2

    async def test_a_crawl_can_be_forgotten(self, full: Client, raw: redis.Redis) -> None:
        await full.frontier.forget(CRAWL)
        assert await full.frontier.crawls() == []


class TestEviction:
    @contextmanager
    def evicting(self, raw: redis.Redis, policy: str) -> Iterator[None]:
        raw.config_set("maxmemory-policy", policy)
        try:
            yield
        finally:
            raw.config_set("maxmemory-policy", "noeviction")

    @pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl"])
    async def test_is_refused(
        self, redis_server: RedisServer, raw: redis.Redis, policy: str
    ) -> None:
        with self.evicting(raw, policy):
            error = await error_of(redis_server.url)
        assert isinstance(error, ConfigError)
        assert f"maxmemory-policy is {policy}" in str(error)
        assert "noeviction" in str(error)

    async def test_a_new_server_is_looked_at_again(
        self, on_redis: RedisBackend, raw: redis.Redis
    ) -> None:
        client = on_redis.client()
        await client.start(*pages(1))
        with self.evicting(raw, "allkeys-lru"):
            raw.script_flush()
            with pytest.raises(ConfigError, match="noeviction"):
                await client.ask()
        assert len(await client.lease()) == 1


class TestPersistence:
    def warnings(self, caplog: pytest.LogCaptureFixture) -> list[str]:
        return [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]

    async def test_none_is_warned_of(
        self, on_redis: RedisBackend, caplog: pytest.LogCaptureFixture
    ) -> None:
        await on_redis.client().start(*pages(1))
        await on_redis.client().work_off()
        (warning,) = self.warnings(caplog)
        assert NO_AOF in warning

    async def test_aof_is_well(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        with RedisServer(tmp_path, "--appendonly", "yes") as server:
            frontier = RedisFrontier(server.url)
            await frontier.start(CRAWL, open_rules())
            await frontier.close()
        assert self.warnings(caplog) == []


async def test_a_replica_is_not_written_to(
    on_redis: RedisBackend, redis_server: RedisServer, tmp_path: Path
) -> None:
    await on_redis.client().start(*pages(2))
    with RedisServer(tmp_path, "--replicaof", f"127.0.0.1 {redis_server.port}") as replica:
        until_now("the replica", lambda: replica.cli("DBSIZE") == redis_server.cli("DBSIZE"))
        frontier = RedisFrontier(replica.url)
        client = Client(frontier, "worker", CRAWL)
        for call in (client.ask(), client.add(entry("b.example/")), client.start()):
            with pytest.raises(StorageBusy, match=r"(?i)read.?only"):
                await call
        await frontier.close()
