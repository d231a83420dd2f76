"""The servers that other tests rely on do what they are started for."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from support.processes import TESTS, is_alive
from support.redis_groups import RedisCluster, RedisSentinel
from support.redis_servers import RedisServer, TlsFiles, valkey_binary
from support.server_process import free_port, missing_server
from support.tcp_proxy import TcpProxy
from support.until import until_now

SERVE_AND_SAY_PID = """
import sys
from pathlib import Path
from support.redis_servers import RedisServer
with RedisServer(Path(sys.argv[1])) as server:
    print(server.pid, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with RedisServer(tmp_path / "redis") as server:
        yield server


@pytest.fixture
def proxy(server: RedisServer) -> Iterator[TcpProxy]:
    with TcpProxy(server.port) as proxy:
        yield proxy


def test_what_was_written_outlives_a_kill_with_aof(tmp_path: Path) -> None:
    with RedisServer(tmp_path, "--appendonly", "yes", "--appendfsync", "always") as server:
        server.cli("SET", "key", "kept")
        port, pid = server.port, server.pid

        server.kill()
        assert not server.is_running()
        server.start()
        assert server.cli("GET", "key") == "kept"

        server.restart()
        assert server.cli("GET", "key") == "kept"
        assert server.port == port
        assert server.pid != pid


def test_nothing_is_kept_by_default(server: RedisServer) -> None:
    server.cli("SET", "key", "value")
    server.restart()
    assert server.cli("EXISTS", "key") == "0"


def test_a_paused_server_answers_later(server: RedisServer) -> None:
    server.pause()
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(b"PING\r\n")
        assert _is_silent(connection)
        server.resume()
        assert connection.recv(100) == b"+PONG\r\n"


def test_a_paused_server_can_be_stopped(server: RedisServer) -> None:
    server.pause()
    server.stop()
    assert not is_alive(server.pid)


def test_a_lost_port_is_given_up_for_another(server: RedisServer, tmp_path: Path) -> None:
    other = RedisServer(tmp_path / "other")
    other.port = server.port
    with other:
        assert other.port != server.port
        assert other.cli("PING") == "PONG"


def test_one_that_does_not_start_shows_its_log(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="Bad directive"), RedisServer(tmp_path, "--no-such"):
        pass


def test_it_dies_with_a_killed_test_run(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SERVE_AND_SAY_PID, str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=TESTS) as run:
        assert run.stdout is not None
        pid = int(run.stdout.readline())
        assert is_alive(pid)
        run.send_signal(signal.SIGKILL)
    until_now("the end of the server", lambda: not is_alive(pid))


def test_a_password_is_asked_for(tmp_path: Path) -> None:
    with RedisServer(tmp_path, password="secret") as server:
        assert server.cli("PING") == "PONG"
        assert server.client().ping()
        with socket.create_connection(("127.0.0.1", server.port)) as stranger:
            assert _ping(stranger).startswith(b"-NOAUTH")


def test_tls_is_verified(tmp_path: Path) -> None:
    with RedisServer(tmp_path / "redis", tls=TlsFiles(tmp_path / "tls")) as server:
        assert server.url.startswith("rediss://")
        assert server.cli("PING") == "PONG"
        with server.client() as client:
            assert client.ping()
        with (
            redis.Redis.from_url(server.url) as stranger,
            pytest.raises(redis.ConnectionError, match="CERTIFICATE_VERIFY_FAILED"),
        ):
            stranger.ping()


def test_valkey_is_served_too(tmp_path: Path) -> None:
    with RedisServer(tmp_path, binary=valkey_binary()) as server, server.client() as client:
        assert client.info("server")["server_name"] == "valkey"


def test_a_missing_server_is_skipped_by_name_but_not_in_ci(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no-such-server"):
        RedisServer(tmp_path, binary="no-such-server").start()
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no-such-server"):
        missing_server("no-such-server")


def test_a_cluster_takes_keys_on_every_master(tmp_path: Path) -> None:
    with RedisCluster(tmp_path) as cluster:
        ports = [server.port for server in cluster.servers]
        assert cluster.url == "redis+cluster://" + ",".join(f"127.0.0.1:{p}" for p in ports)
        with redis.RedisCluster("127.0.0.1", ports[0]) as client:
            for number in range(30):
                client.set(f"key{number}", number)
        sizes = [int(server.cli("DBSIZE")) for server in cluster.servers]
        assert all(sizes)
        assert sum(sizes) == 30

        cluster.flush()
        assert [server.cli("DBSIZE") for server in cluster.servers] == ["0"] * 3


@pytest.mark.rare
def test_a_cluster_has_replicas_if_asked(tmp_path: Path) -> None:
    with RedisCluster(tmp_path, replicas=1) as cluster:
        assert cluster.masters() == cluster.servers[:3]
        assert len(cluster.servers) == 6


@pytest.mark.rare
def test_sentinels_promote_the_replica(tmp_path: Path) -> None:
    with RedisSentinel(tmp_path) as sentinel:
        first, replica = sentinel.servers
        assert sentinel.master_port() == first.port
        first.cli("SET", "key", "kept")
        assert first.cli("WAIT", "1", "0") == "1"

        assert sentinel.kill_master() is first
        assert sentinel.wait_for_new_master() is replica
        assert replica.cli("GET", "key") == "kept"
        assert replica.cli("SET", "key", "changed") == "OK"


def test_a_cut_resets_and_refuses(server: RedisServer, proxy: TcpProxy) -> None:
    with _connect(proxy) as connection:
        assert _ping(connection) == b"+PONG\r\n"
        proxy.cut()
        with pytest.raises(ConnectionResetError):
            connection.recv(100)
    with pytest.raises(ConnectionRefusedError):
        _connect(proxy)

    proxy.heal()
    with _connect(proxy) as connection:
        assert _ping(connection) == b"+PONG\r\n"


def test_frozen_connections_are_silent_until_healed(server: RedisServer, proxy: TcpProxy) -> None:
    with _connect(proxy) as old:
        assert _ping(old) == b"+PONG\r\n"
        proxy.freeze()
        with _connect(proxy) as new:
            for connection in (old, new):
                connection.sendall(b"INCR counter\r\n")
                assert _is_silent(connection)
            assert server.cli("EXISTS", "counter") == "0"

            proxy.heal()
            assert {old.recv(100), new.recv(100)} == {b":1\r\n", b":2\r\n"}


def test_a_frozen_connection_does_not_show_its_end(server: RedisServer, proxy: TcpProxy) -> None:
    with _connect(proxy) as connection:
        assert _ping(connection) == b"+PONG\r\n"
        proxy.freeze()
        server.kill()
        assert _is_silent(connection)
        proxy.heal()
        assert connection.recv(100) == b""


def test_a_frozen_proxy_can_be_cut(server: RedisServer, proxy: TcpProxy) -> None:
    with _connect(proxy) as connection:
        proxy.freeze()
        proxy.cut()
        with pytest.raises(ConnectionResetError):
            connection.recv(100)


def test_a_proxy_without_a_target_hangs_up() -> None:
    with TcpProxy(free_port()) as proxy, _connect(proxy) as connection:
        assert connection.recv(100) == b""


def _connect(proxy: TcpProxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port))


def _ping(connection: socket.socket) -> bytes:
    connection.sendall(b"PING\r\n")
    return connection.recv(100)


def _is_silent(connection: socket.socket) -> bool:
    """Whether nothing arrives. A moment is enough: over loopback, an answer takes far less."""
    connection.settimeout(0.2)
    try:
        connection.recv(100)
    except TimeoutError:
        return True
    finally:
        connection.settimeout(None)
    return False
