"""Who may: passwords, users with few rights, and certificates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from redis.exceptions import NoPermissionError

from shoal.config import Rules
from shoal.errors import ConfigError
from shoal.frontier.admission import Admission
from shoal.frontier.broker.carriers.redis import RedisCarrier
from shoal.frontier.broker.frontier import CarriedFrontier, Waits
from shoal.frontier.redis import RedisFrontier
from shoal.frontier.values import Ask, Control, DeadFilter, Entry, Verdict
from shoal.seeds.seeding import read_seed
from support.carried_backend import SMALLEST
from support.exits import DC, ExitClient, laned_pages, put_pool
from support.frontiers import CRAWL, Client, outcome, pages, pulse
from support.markdown import ROOT, blocks
from support.redis_servers import RedisServer, TlsFiles

PASSWORD = "p@ss/wo:rd#"
ESCAPED = "p%40ss%2Fwo%3Ard%23"
INBOX = f"shoal:{CRAWL}:inbox"
SECURITY = ROOT / "docs/security.md"

COMMANDS = (
    *("evalsha", "eval", "script|load", "time"),
    *("get", "set", "del", "unlink", "exists", "incr", "type", "rename", "pexpire"),
    *("hget", "hset", "hsetnx", "hmget", "hgetall", "hvals", "hdel", "hincrby"),
    *("hrandfield", "hscan"),
    *("zadd", "zrem", "zrange", "zrevrange", "zrangebyscore", "zscore", "zmscore"),
    *("zscan", "zcard", "zcount", "zremrangebyscore"),
    *("lpush", "rpush", "lpop", "lrem", "lrange", "llen", "ltrim"),
    *("sadd", "srem", "smembers", "scard", "smismember"),
    *("getbit", "setbit", "bitfield"),
)
"""All that a user of one server needs."""
SELDOM = ("hexists",)
"""And where chains keep cookies."""
TRAVELLING = ("hlen", "lindex", "sismember", "srandmember")
"""And where tasks travel."""

FORBIDDEN_TO_SEEDERS = (
    ("LPUSH", "shoal:other:inbox", "https://shop.example/"),
    ("LRANGE", "shoal:shop:inbox", "0", "-1"),
    ("DEL", "shoal:shop:inbox"),
    ("HSET", "shoal:{shop}:crawl", "state", "finished"),
    ("HGETALL", "shoal:{shop}:crawl"),
    ("SMEMBERS", "shoal:crawls"),
    ("EVAL", "return 1", "0"),
    ("KEYS", "*"),
    ("CONFIG", "GET", "*"),
)

_admission = Admission(Rules())


def acl_lines() -> list[str]:
    """What docs/security.md tells operators to write."""
    conf = next(block.text for block in blocks(SECURITY) if block.language == "conf")
    return [line for line in conf.splitlines() if line.startswith("user ")]


def read(text: bytes) -> Entry:
    return _admission.admit(read_seed(text))


@pytest.fixture(scope="module")
def locked_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with RedisServer(Path(tmp_path_factory.mktemp("locked"))) as server:
        server.cli("CONFIG", "SET", "requirepass", PASSWORD)
        yield server


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def tls_server(folder: Path) -> Iterator[RedisServer]:
    with RedisServer(folder / "redis", tls=TlsFiles(folder / "own")) as server:
        yield server


async def live_a_life(client: Client, seen: str) -> None:
    """Use all that a frontier can do."""
    frontier = client.frontier
    await client.start(*pages(4), seen=seen, seen_for="1d")
    lease, failed, bad, unwanted = await client.lease(4)
    await client.state(lease)
    await client.renew(lease)
    chained = pages(3, "b.example", chain="chain")
    await client.end(lease, follow_ups=[*pages(9), *chained])
    await client.end(failed, Verdict.RETRY)
    await client.end(bad, Verdict.DEAD, reason="bad")
    await client.end(unwanted, Verdict.DROPPED, reason="unwanted")
    for found in pages(9):
        await client.state(found)
    await frontier.find_others(CRAWL, "a.example", bool, 9)
    (dead,) = await frontier.dead(CRAWL, 9)
    assert await frontier.retry_dead(CRAWL, DeadFilter(fingerprints=[dead.fingerprint])) == 1
    for _ in range(2):
        await client.lease(20)
        await frontier.release(CRAWL, client.worker)
    (suspect,) = await client.lease(20)
    assert await frontier.holders(CRAWL) == [client.worker]
    await frontier.exchange(CRAWL, [outcome(suspect)], Ask(client.worker, 1))
    await frontier.beat(CRAWL, pulse())
    assert len(await frontier.workers(CRAWL)) == 1
    await frontier.robots(CRAWL, "a.example")
    await frontier.hosts(CRAWL, 5)
    await frontier.collect(CRAWL, read)
    await client.control(Control.SEAL)
    await client.control(Control.CANCEL)
    assert len(await frontier.crawls()) == 1
    await frontier.forget(CRAWL)
    await live_by_exits(ExitClient(frontier))


async def live_by_exits(client: ExitClient) -> None:
    """Use all that a frontier can do with exits."""
    frontier = client.frontier
    await put_pool(frontier, 3, sticky_s=60.0, concurrency=1)
    await put_pool(frontier, 2, sticky_s=60.0, concurrency=1)
    await client.begin(*laned_pages(4))
    await client.blocked(*await client.take())
    await client.take()
    assert len(await frontier.exits(DC)) == 2
    assert len(await frontier.pools()) == 1
    assert len(await frontier.lanes(CRAWL, 9)) == 1
    await frontier.hosts(CRAWL, 5)
    await frontier.forget(CRAWL)


class TestPassword:
    @pytest.mark.parametrize("login", [f":{PASSWORD}", f":{ESCAPED}", f"default:{ESCAPED}"])
    async def test_right(self, locked_server: RedisServer, login: str) -> None:
        frontier = RedisFrontier(f"redis://{login}@127.0.0.1:{locked_server.port}")
        assert await frontier.crawls() == []
        await frontier.close()

    @pytest.mark.parametrize("login", [":hunter2@", "user:hunter2@", ""])
    async def test_wrong(self, locked_server: RedisServer, login: str) -> None:
        frontier = RedisFrontier(f"redis://{login}127.0.0.1:{locked_server.port}")
        for _ in range(2):
            with pytest.raises(ConfigError, match=r"127\.0\.0\.1") as raised:
                await frontier.lease(CRAWL, Ask("worker", 1))
            assert "hunter2" not in str(raised.value)
        await frontier.close()

    async def test_not_asked_for(self, redis_server: RedisServer) -> None:
        frontier = RedisFrontier(f"redis://:hunter2@127.0.0.1:{redis_server.port}")
        with pytest.raises(ConfigError, match="without any password") as raised:
            await frontier.crawls()
        assert "hunter2" not in str(raised.value)
        await frontier.close()


class TestRights:
    def make_user(self, server: RedisServer, *rights: str) -> str:
        """A user with these rights, and their address."""
        server.client().flushall()
        server.cli("ACL", "SETUSER", "shoal", "reset", "on", ">secret", "~shoal:*", *rights)
        return f"redis://shoal:secret@127.0.0.1:{server.port}"

    async def test_what_is_needed_is_enough(self, redis_server: RedisServer) -> None:
        """And all of it is needed: each of the commands was run."""
        address = self.make_user(redis_server, *(f"+{command}" for command in COMMANDS))
        redis_server.cli("SCRIPT", "FLUSH")
        redis_server.cli("CONFIG", "RESETSTAT")
        frontier = RedisFrontier(address)
        with redis_server.client() as raw:
            for seen in ("exact", "bloom"):
                raw.lpush(INBOX, "http://a.example/inbox", "nonsense")
                await live_a_life(Client(frontier, "worker", CRAWL), seen)
            raw.delete(INBOX)
            raw.set(INBOX, "not a list")
            await frontier.collect(CRAWL, read)
            used = {name.removeprefix("cmdstat_") for name in raw.info("commandstats")}
        await frontier.close()
        assert set(COMMANDS) <= used

    async def test_tasks_that_travel_need_a_few_more(self, redis_server: RedisServer) -> None:
        rights = [f"+{command}" for command in (*COMMANDS, *SELDOM, *TRAVELLING)]
        address = self.make_user(redis_server, *rights)
        # One that waits until it has all that was asked for.
        waits = Waits(ack_s=0.0, fill_s=10.0, enough=1.0)
        frontier = CarriedFrontier(address, RedisCarrier(address), SMALLEST, None, waits)
        redis_server.cli("CONFIG", "RESETSTAT")
        for seen in ("exact", "bloom"):
            await live_a_life(Client(frontier, "worker", CRAWL), seen)
        with redis_server.client() as raw:
            used = {name.removeprefix("cmdstat_") for name in raw.info("commandstats")}
        await frontier.close()
        assert set(TRAVELLING) <= used

    async def test_too_few_are_named(self, redis_server: RedisServer) -> None:
        frontier = RedisFrontier(self.make_user(redis_server, "+@all", "-evalsha"))
        with pytest.raises(ConfigError, match="evalsha") as raised:
            await frontier.start(CRAWL, Rules())
        assert "secret" not in str(raised.value)
        await frontier.close()

    @pytest.mark.parametrize("command", FORBIDDEN_TO_SEEDERS, ids=" ".join)
    def test_who_may_only_seed(self, redis_server: RedisServer, command: tuple[str, ...]) -> None:
        """The lines that docs/security.md gives: they may push, and nothing else."""
        with redis_server.client() as admin:
            admin.flushall()
            admin.hset("shoal:{shop}:crawl", "state", "running")
        for line in acl_lines():
            redis_server.cli("ACL", "SETUSER", *line.split()[1:])
        address = redis_server.url.replace("//", "//seeder:SECRET@")
        with redis.Redis.from_url(address) as seeder:
            assert seeder.lpush("shoal:shop:inbox", "https://shop.example/") == 1
            with pytest.raises(NoPermissionError):
                seeder.execute_command(*command)


class TestCertificates:
    def address(self, server: RedisServer, authority: Path | str, host: str = "127.0.0.1") -> str:
        return f"rediss://{host}:{server.port}?ca={authority}"

    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
    async def test_verified(self, tls_server: RedisServer, folder: Path, host: str) -> None:
        authority = folder / "own" / "authority.pem"
        frontier = RedisFrontier(self.address(tls_server, authority, host))
        client = Client(frontier, "worker", f"crawl at {host}")
        await client.start(*pages(2))
        assert await client.work_off() == 2
        await frontier.close()

    async def test_of_another_authority(self, tls_server: RedisServer, folder: Path) -> None:
        stranger = TlsFiles(folder / "other").authority
        await self.refused(self.address(tls_server, stranger), "issuer certificate")

    async def test_of_no_known_authority(self, tls_server: RedisServer) -> None:
        await self.refused(f"rediss://127.0.0.1:{tls_server.port}", "issuer certificate")

    async def test_of_another_host(self, tls_server: RedisServer, folder: Path) -> None:
        """One name of this machine that the certificate does not have."""
        authority = folder / "own" / "authority.pem"
        await self.refused(self.address(tls_server, authority, "127.1"), "mismatch")

    async def test_a_file_that_is_not_there(self, tls_server: RedisServer) -> None:
        await self.refused(self.address(tls_server, "/no/such.pem"), "/no/such.pem")

    async def test_a_file_without_certificates(self, tls_server: RedisServer, folder: Path) -> None:
        await self.refused(
            self.address(tls_server, folder / "own" / "server.key"), "no certificates"
        )

    async def refused(self, address: str, reason: str) -> None:
        frontier = RedisFrontier(address)
        with pytest.raises(ConfigError, match=reason):
            await frontier.crawls()
        await frontier.close()
