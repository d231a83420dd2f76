"""Addresses of streams, passwords, users with few rights, and certificates."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.results_suite import CRAWL, all_items, some_item
from shoal.errors import ConfigError
from shoal.results import open_queue, open_results
from shoal.results.port import Batch, RunNote
from shoal.results.sqlite.store import SqliteResults
from shoal.results.stream import RedisStreamResults, ResultQueue, queue
from support.redis_servers import RedisServer, TlsFiles
from support.streams import KEY, deliver_all, stream_url

PASSWORD = "hunter2"
BATCH = Batch(items=[some_item()])

COMMANDS = (
    *("eval", "hget", "hset", "xlen", "xadd", "exists", "xinfo|groups", "xinfo|consumers"),
    *("xautoclaim", "xreadgroup", "xpending", "xgroup|create", "xgroup|setid"),
    *("xgroup|delconsumer", "xack", "xdel", "xclaim", "lpush", "ltrim"),
)
"""All that workers and deliverers need."""


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with RedisServer(tmp_path_factory.mktemp("locked"), password=PASSWORD) as server:
        yield server


async def lives(address: str, path: Path) -> None:
    """Save, drain, put aside, take over, and leave."""
    results, store = RedisStreamResults(address), SqliteResults(path / "shoal.db")
    await results.note_run(CRAWL, RunNote("redis://one"))
    assert await results.note_of(CRAWL)
    await results.save(CRAWL, BATCH)
    dead = ResultQueue(address)
    await dead.give_back((await dead.take()).entries)
    await dead.close()
    await deliver_all(address, store)
    assert await all_items(store) == BATCH.items
    await results.close()
    await store.close()


class TestAddresses:
    @pytest.mark.parametrize(
        ("address", "says"),
        [
            ("redis-stream://host?max=0", "max is a number of batches"),
            ("redis-stream://host?max=many", "max is a number of batches"),
            ("redis-stream://host?key=", "the key is empty"),
            ("redis-stream://host?ca=x", r"unknown option ca \(there are: key, max\)"),
            ("rediss-stream://host?size=5", r"unknown option size \(there are: ca, key, max\)"),
            ("redis-stream://host/shop", "not a database number: 'shop'"),
            ("redis-stream://h1,h2", "several hosts"),
            ("redis-stream://", "not a host and port"),
            ("redis-stream:host", "not an address"),
        ],
    )
    def test_wrong_ones(self, address: str, says: str) -> None:
        for opens in (open_results, open_queue):
            with pytest.raises(ConfigError, match=says) as caught:
                opens(address)
            assert len(str(caught.value).splitlines()) == 1

    @pytest.mark.parametrize("address", ["sqlite:///shoal.db", "redis://me:hunter2@host", ""])
    def test_only_a_stream_can_be_delivered(self, address: str) -> None:
        with pytest.raises(ConfigError, match=r"write redis-stream://host") as caught:
            open_queue(address)
        assert PASSWORD not in str(caught.value)

    def test_they_are_known_and_opened_late(self) -> None:
        assert isinstance(open_results("redis-stream://nobody.invalid"), RedisStreamResults)
        assert isinstance(open_queue("rediss-stream://u:p@nobody.invalid:1/3"), ResultQueue)

    def test_the_extra_is_named(self) -> None:
        """In a process of its own: modules that are loaded anew here would be others'."""
        code = (
            "import sys; sys.modules['redis'] = None\n"
            "from shoal.results import open_results; open_results('redis-stream://host')"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert "MissingExtra: redis-stream:// results needs an extra" in done.stderr
        assert "shoal[redis]" in done.stderr


class TestLogin:
    async def test_the_right_password(self, locked: RedisServer, tmp_path: Path) -> None:
        await lives(stream_url(locked), tmp_path)

    @pytest.mark.parametrize("login", [":s3cret@", "me:s3cret@", ""])
    async def test_a_wrong_one(self, locked: RedisServer, login: str) -> None:
        address = f"redis-stream://{login}127.0.0.1:{locked.port}"
        results, queue = RedisStreamResults(address), ResultQueue(address)
        for call in (results.save(CRAWL, BATCH), queue.take()):
            with pytest.raises(ConfigError, match=r"redis-stream://.*127\.0\.0\.1") as caught:
                await call
            assert "s3cret" not in str(caught.value)
        await results.close()
        await queue.close()

    async def test_rights_that_are_enough(
        self, redis_server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """And all of them are needed: each of the commands was run."""
        monkeypatch.setattr(queue, "HELD_S", 0.1)
        rights = [f"+{command}" for command in COMMANDS]
        redis_server.cli("ACL", "SETUSER", "me", "reset", "on", ">pw", f"~{KEY}*", *rights)
        with redis_server.client() as raw:
            raw.flushall()
            redis_server.cli("CONFIG", "RESETSTAT")
            raw.xadd(KEY, {"hello": "world"})
            await lives(f"redis-stream://me:pw@127.0.0.1:{redis_server.port}", tmp_path)
            await self.lose_sight(redis_server)
            used = {name.removeprefix("cmdstat_") for name in raw.info("commandstats")}
        assert set(COMMANDS) <= used

    async def lose_sight(self, server: RedisServer) -> None:
        """Let a deliverer find what has fallen out of all hands."""
        deliverer = ResultQueue(f"redis-stream://me:pw@127.0.0.1:{server.port}")
        with server.client() as raw:
            raw.xadd(KEY, {"hello": "world"})
            raw.xgroup_setid(KEY, "drain", "$")
        assert len((await deliverer.take()).garbage) == 1
        await deliverer.close()


async def test_certificates(tmp_path: Path) -> None:
    tls = TlsFiles(tmp_path / "own")
    with RedisServer(tmp_path / "redis", tls=tls) as server:
        await lives(f"{stream_url(server)}?ca={tls.authority}&max=5", tmp_path)
        results = RedisStreamResults(stream_url(server))
        with pytest.raises(ConfigError, match="issuer certificate"):
            await results.save(CRAWL, BATCH)
        await results.close()
