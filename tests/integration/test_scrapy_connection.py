"""Where Redis is, as the settings of scrapy-redis say it."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import redis
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.settings import Settings

from shoal.errors import ConfigError, StorageBusy
from shoal.scrapy import connection, defaults
from shoal.scrapy.connection import address_of, get_redis, get_redis_from_settings
from shoal.scrapy.link import ScriptLink, address_for
from support.redis_servers import RedisServer, TlsFiles
from support.server_process import free_port

PASSWORD = "p@ss:word"
ODD_PASSWORD, QUOTED = "p@ss/w:rd#?", "p%40ss%2Fw%3Ard%23%3F"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with RedisServer(tmp_path_factory.mktemp("redis"), password=PASSWORD) as server:
        yield server


class OwnRedis(redis.Redis):
    """A project's own class of clients."""


class TestAddress:
    @pytest.mark.parametrize(
        ("settings", "address"),
        [
            ({}, None),
            ({"REDIS_ENCODING": "latin-1", "REDIS_PARAMS": {"socket_timeout": 3}}, None),
            ({"REDIS_HOST": "", "REDIS_PORT": None}, None),
            ({"REDIS_HOST": "queue"}, "redis://queue:6379/0"),
            ({"REDIS_PORT": "7000"}, "redis://localhost:7000/0"),
            ({"REDIS_DB": 3}, "redis://localhost:6379/3"),
            ({"REDIS_HOST": "::1", "REDIS_PORT": 1}, "redis://[::1]:1/0"),
            ({"REDIS_URL": "redis://queue"}, "redis://queue:6379/0"),
            ({"REDIS_URL": "redis://queue:7000/2"}, "redis://queue:7000/2"),
            ({"REDIS_URL": "redis://queue?db=2&socket_timeout=5"}, "redis://queue:6379/2"),
            ({"REDIS_URL": "redis://me:pw@queue/1"}, "redis://me:pw@queue:6379/1"),
            ({"REDIS_URL": "redis://queue", "REDIS_HOST": "other"}, "redis://queue:6379/0"),
            (
                {"REDIS_URL": "redis://queue", "REDIS_PARAMS": {"password": ODD_PASSWORD, "db": 4}},
                f"redis://:{QUOTED}@queue:6379/4",
            ),
            (
                {"REDIS_URL": "redis://:a@queue/1", "REDIS_PARAMS": {"password": "b", "db": 4}},
                "redis://:a@queue:6379/1",
            ),
            (
                {"REDIS_HOST": "queue", "REDIS_PARAMS": {"username": "me", "password": "pw"}},
                "redis://me:pw@queue:6379/0",
            ),
            ({"REDIS_PARAMS": {"host": "a", "port": 1}}, "redis://a:1/0"),
            ({"REDIS_PARAMS": {"host": "a"}, "REDIS_HOST": "b"}, "redis://b:6379/0"),
            ({"REDIS_PARAMS": {"url": "redis://a"}}, "redis://a:6379/0"),
            ({"REDIS_PARAMS": '{"host": "a"}'}, "redis://a:6379/0"),
            ({"REDIS_HOST": "a", "REDIS_PARAMS": {"ssl": True}}, "rediss://a:6379/0"),
            (
                {"REDIS_HOST": "a", "REDIS_PARAMS": {"ssl": True, "ssl_ca_certs": "/x y.pem"}},
                "rediss://a:6379/0?ca=%2Fx+y.pem",
            ),
            (
                {"REDIS_URL": "rediss://a?ssl_ca_certs=/x.pem"},
                "rediss://a:6379/0?ca=%2Fx.pem",
            ),
            ({"REDIS_URL": "rediss://a?ca=/x.pem"}, "rediss://a:6379/0?ca=%2Fx.pem"),
            ({"REDIS_URL": "redis+cluster://h1,h2"}, "redis+cluster://h1,h2"),
            ({"REDIS_URL": "redis+sentinel://h1,h2/main"}, "redis+sentinel://h1,h2/main"),
        ],
    )
    def test_what_settings_mean(self, settings: dict[str, Any], address: str | None) -> None:
        assert address_of(Settings(settings)) == address

    @pytest.mark.parametrize(
        ("settings", "says"),
        [
            ({"REDIS_URL": "unix:///tmp/redis.sock"}, "not an address of Redis"),
            ({"REDIS_URL": "me:hunter2@queue"}, "not an address of Redis"),
            ({"REDIS_URL": "redis://me:hunter2@"}, "not a host and port"),
            ({"REDIS_PORT": "first"}, "REDIS_PORT is no number"),
            ({"REDIS_PARAMS": {"unix_socket_path": "/tmp/x"}}, "not by a socket"),
        ],
    )
    def test_what_cannot_be_reached(self, settings: dict[str, Any], says: str) -> None:
        with pytest.raises(ConfigError, match=says) as caught:
            address_of(Settings(settings))
        assert "hunter2" not in str(caught.value)

    @pytest.mark.parametrize(
        ("settings", "address"),
        [
            ({}, "redis://localhost:6379/0"),
            ({"SHOAL_FRONTIER": "redis://queue/1"}, "redis://queue/1"),
            ({"SHOAL_FRONTIER": "sqlite:///x.db"}, "redis://localhost:6379/0"),
            (
                {"SHOAL_FRONTIER": "redis://queue/1", "REDIS_HOST": "feeds"},
                "redis://feeds:6379/0",
            ),
        ],
    )
    def test_where_feeds_and_items_are(self, settings: dict[str, Any], address: str) -> None:
        spider = type("Shop", (Spider,), {"name": "shop"})

        assert address_for(Crawler(spider, settings)) == address


class TestClient:
    def test_it_is_a_client_of_redis_py(self, server: RedisServer) -> None:
        with get_redis_from_settings(Settings({"REDIS_URL": _address(server)})) as client:
            assert isinstance(client, redis.Redis)
            client.set("a", "ä")
            assert client.get("a") == "ä".encode()

    def test_its_parameters(self, server: RedisServer) -> None:
        settings = Settings(
            {
                "REDIS_HOST": "127.0.0.1",
                "REDIS_PORT": server.port,
                "REDIS_ENCODING": "latin-1",
                "REDIS_DECODE_RESPONSES": True,
                "REDIS_PARAMS": {
                    "password": PASSWORD,
                    "redis_cls": f"{__name__}.OwnRedis",
                    "socket_timeout": 7,
                },
            }
        )
        with connection.from_settings(settings) as client:
            assert type(client) is OwnRedis
            client.set("a", b"\xe4")
            assert client.get("a") == "ä"
            assert client.connection_pool.connection_kwargs["socket_timeout"] == 7

    def test_the_defaults(self) -> None:
        with get_redis_from_settings(Settings()) as client:
            kwargs = client.connection_pool.connection_kwargs
        assert kwargs["socket_timeout"] == defaults.REDIS_PARAMS["socket_timeout"] == 30

    def test_get_redis(self, server: RedisServer) -> None:
        with get_redis(url=_address(server), redis_cls=OwnRedis) as client:
            assert type(client) is OwnRedis
            assert client.ping()
        with get_redis(host="127.0.0.1", port=server.port, password=PASSWORD) as client:
            assert client.ping()

    def test_the_redis_of_the_frontier(self, server: RedisServer) -> None:
        with get_redis_from_settings(Settings({"SHOAL_FRONTIER": _address(server)})) as client:
            assert client.ping()

    def test_several_servers(self) -> None:
        with pytest.raises(ConfigError, match="redis:// and rediss:// only") as caught:
            get_redis(url="redis+cluster://me:hunter2@h1,h2")
        assert "hunter2" not in str(caught.value)

    def test_tls(self, tmp_path: Path) -> None:
        files = TlsFiles(tmp_path / "tls")
        with RedisServer(tmp_path / "redis", tls=files) as server:
            url = f"rediss://127.0.0.1:{server.port}?ca={files.authority}"
            with get_redis_from_settings(Settings({"REDIS_URL": url})) as client:
                assert client.ping()

    def test_the_extra_is_named(self) -> None:
        """In a process of its own: modules that are loaded anew here would be others'."""
        for call in ("connection.get_redis()", "link.ScriptLink('redis://host')"):
            code = (
                "import sys; sys.modules['redis'] = None\n"
                f"from shoal.scrapy import connection, link; {call}"
            )
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
            assert "MissingExtra: " in done.stderr
            assert "shoal[redis]" in done.stderr


class TestLink:
    async def test_the_settings_of_scrapy_redis_reach_the_server(self, server: RedisServer) -> None:
        settings = {"REDIS_PORT": server.port, "REDIS_PARAMS": {"password": PASSWORD}}
        address = address_of(Settings({"REDIS_HOST": "127.0.0.1", **settings}))
        assert address is not None
        link = ScriptLink(address)
        assert await link.command("SET", "x", "y") is True
        await link.close()

    async def test_no_password_is_shown(
        self, server: RedisServer, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        wrong = ScriptLink(f"redis://:hunter2@127.0.0.1:{server.port}")
        nobody = ScriptLink(f"redis://:hunter2@127.0.0.1:{free_port()}")
        with pytest.raises(ConfigError) as refused:
            await wrong.command("GET", "x")
        with pytest.raises(StorageBusy) as away:
            await nobody.command("GET", "x")
        await wrong.close()
        await nobody.close()

        assert "hunter2" not in f"{refused.value} {away.value} {caplog.text}"


def _address(server: RedisServer) -> str:
    return f"redis://:{quote(PASSWORD)}@127.0.0.1:{server.port}/0"
