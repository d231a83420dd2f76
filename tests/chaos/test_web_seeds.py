"""Seeds through the API, while the server is killed or the frontier stands still."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from support.processes import Folder, peak_memory_kb
from support.redis_servers import RedisServer
from support.tcp_proxy import TcpProxy
from support.until import LIMIT_S, until_now
from support.web import LOCAL, Answered, Web, serving_web

SEEDS = 300_000
MORE_KB = 60_000
STUCK_KB = 30_000
"""About half of what the client wants to send."""
BEGUN, CHUNK = 2_000_000, 65_536
STUCK_S = 3.0
"""A client that cannot send for this long counts as stopped."""
LINES = {"Content-Type": "application/x-ndjson", **LOCAL}


def send_all(server: Web, file: Path) -> Answered:
    size = {"Content-Length": str(file.stat().st_size)}
    with file.open("rb") as body:
        return server.send("POST", "/api/v1/crawls/many/seeds", body, {**LINES, **size})


@pytest.mark.rare
def test_all_are_there_after_a_kill_and_a_repeat_and_memory_is_flat(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    urls = (f"https://shop{number % 50}.example/{number}\n" for number in range(SEEDS))
    file = folder.write("urls.txt", "".join(urls))
    with serving_web(folder) as server, ThreadPoolExecutor(1) as pool:
        sending = pool.submit(send_all, server, file)
        until_now("some seeds to be in", lambda: is_begun(server) or sending.done())
        server.process.kill_all()
        assert isinstance(sending.exception(), OSError)
    assert 0 < folder.stats("many").waiting < SEEDS
    with serving_web(folder) as server:
        before = peak_memory_kb(server.process.pid)
        answer = send_all(server, file).json
        assert answer["added"] + answer["duplicates"] == SEEDS
        assert answer["duplicates"] > 0
        assert peak_memory_kb(server.process.pid) - before < MORE_KB
    assert folder.stats("many").waiting == SEEDS


@pytest.mark.rare
def test_a_frontier_that_stands_still_stops_the_client_and_grows_no_memory(tmp_path: Path) -> None:
    """The server does not read more than it can pass on. If the frontier stands still for too long,
    the client is told to retry, and sends everything again."""
    lines = (f"https://shop{n % 50}.example/{n}?{'x' * 170}\n" for n in range(SEEDS))
    file = Folder(tmp_path).write("urls.txt", "".join(lines))
    body = file.read_bytes()
    with RedisServer(tmp_path / "redis") as redis, TcpProxy(redis.port) as wire:
        folder = Folder(tmp_path, {"SHOAL_FRONTIER": f"redis://127.0.0.1:{wire.port}"})
        with serving_web(folder) as server:
            before = peak_memory_kb(server.process.pid)
            with streaming(server, len(body)) as client:
                sent = send_until_stuck(client, body[:BEGUN])
                wire.freeze()
                sent += send_until_stuck(client, body[sent:])
                assert sent < len(body) / 2
                assert peak_memory_kb(server.process.pid) - before < STUCK_KB
                wire.heal()
                client.settimeout(LIMIT_S)
                with suppress(OSError):  # It was told to retry while it went on sending.
                    client.sendall(body[sent:])
                    client.recv(1)
            answer = send_all(server, file).json
            assert answer["added"] + answer["duplicates"] == SEEDS
            assert peak_memory_kb(server.process.pid) - before < STUCK_KB
            assert folder.stats("many").waiting == SEEDS


def streaming(server: Web, size: int) -> socket.socket:
    """Open a connection and announce a body of `size` bytes of lines."""
    host, port = server.base.removeprefix("http://").split(":")
    client = socket.create_connection((host, int(port)), STUCK_S)
    head = {"Host": host, "Content-Length": str(size), **LINES}
    told = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    client.sendall(f"POST /api/v1/crawls/many/seeds HTTP/1.1\r\n{told}\r\n".encode())
    return client


def send_until_stuck(client: socket.socket, body: bytes) -> int:
    """Send until the server stops reading. Returns how many bytes were sent."""
    sent = 0
    with suppress(TimeoutError):
        while sent < len(body):
            sent += client.send(body[sent : sent + CHUNK])
    return sent


def is_begun(server: Web) -> bool:
    answer = server.get("/api/v1/crawls/many")
    return answer.status == 200 and answer.json["waiting"] > 5_000
