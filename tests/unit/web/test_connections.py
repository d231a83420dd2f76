"""Clients that cost us something and themselves nothing: real sockets, short limits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from shoal.web import connections
from shoal.web.connections import ConcurrencyLimit, Connections, connection_of
from shoal.web.problems import Problem
from support.until import LIMIT_S, in_time, until

HEADERS = {"Server": "shoal"}
GET = b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n"
LARGE = 8 * 1024 * 1024


class Client:
    """A client that does what it likes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def status(self) -> int:
        async with asyncio.timeout(LIMIT_S):
            head = await self.reader.readuntil(b"\r\n\r\n")
        return int(head.split()[1])

    def cannot_send(self) -> bool:
        """How a client notices that does not read."""
        self.send(b"x")
        return self.writer.transport.is_closing()

    async def is_cut_off(self) -> bool:
        """Waits for it."""
        try:
            async with asyncio.timeout(LIMIT_S):
                await self.reader.read()
        except ConnectionError:
            pass
        return True


class Serving:
    """A server with few places."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.busy = 0
        self.go_on = asyncio.Event()
        self.clients: list[Client] = []

    async def client(self) -> Client:
        client = Client(*await asyncio.open_connection("127.0.0.1", self.port))
        self.clients.append(client)
        return client

    async def ask(self) -> int:
        client = await self.client()
        client.send(GET % b"/")
        return await client.status()


@asynccontextmanager
async def serving(most: int) -> AsyncIterator[Serving]:
    served = Serving(0)

    async def answer(request: Any) -> web.Response:
        connection = connection_of(request)
        connection.begin(request)
        if request.path == "/busy":
            served.busy += 1
            await in_time("leave to go on", served.go_on.wait())
        if request.method == "POST":
            with connection.waiting():
                await request.read()
        return web.Response(body=b"x" * (LARGE if request.path == "/large" else 1))

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    assert runner.server is not None
    factory = Connections(runner.server, HEADERS, most, access_log=None)
    loop = asyncio.get_running_loop()
    listener = await loop.create_server(factory, "127.0.0.1", 0)
    served.port = listener.sockets[0].getsockname()[1]
    try:
        yield served
    finally:
        served.go_on.set()
        for client in served.clients:
            client.writer.close()
        listener.close()
        await runner.cleanup()


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, float], None]:
    return lambda name, value: monkeypatch.setattr(connections, name, value)


Limit = Callable[[str, float], None]


async def test_who_has_been_silent_longest_makes_room(limit: Limit) -> None:
    limit("GRACE_S", 0.0)
    async with serving(2) as served:
        first, second = await served.client(), await served.client()
        second.send(GET % b"/")
        assert await second.status() == 200

        assert await served.ask() == 200
        assert await first.is_cut_off()
        second.send(GET % b"/")
        await second.reader.readexactly(1)
        assert await second.status() == 200


async def test_nobody_is_put_out_at_once() -> None:
    async with serving(2) as served:
        silent = [await served.client() for _ in range(2)]
        assert await served.ask() == 503

        silent[0].send(GET % b"/")
        assert await silent[0].status() == 200


async def test_a_full_house_says_so_at_once(limit: Limit) -> None:
    limit("GRACE_S", 0.0)
    async with serving(2) as served:
        busy = [await served.client() for _ in range(2)]
        for client in busy:
            client.send(GET % b"/busy")
        await until("both at work", lambda: served.busy == 2)

        late = await served.client()
        late.send(GET % b"/")
        told = (await late.reader.read()).decode()
        head, body = told.split("\r\n\r\n")
        assert head.startswith("HTTP/1.1 503 ")
        assert "Server: shoal" in head
        assert "Retry-After: 1" in head
        assert json.loads(body)["status"] == 503

        served.go_on.set()
        assert [await client.status() for client in busy] == [200, 200]


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHo"])
async def test_a_first_request_has_to_come_in_time(sent: bytes, limit: Limit) -> None:
    limit("FIRST_S", 0.05)
    async with serving(2) as served:
        client = await served.client()
        client.send(sent)
        assert await client.is_cut_off()


async def test_a_connection_is_not_kept_for_ever(limit: Limit) -> None:
    limit("IDLE_S", 0.05)
    async with serving(2) as served:
        client = await served.client()
        client.send(GET % b"/")
        assert await client.status() == 200
        assert await client.is_cut_off()


async def test_a_slow_body_makes_room(limit: Limit) -> None:
    limit("GRACE_S", 0.0)
    async with serving(1) as served:
        slow = await served.client()
        slow.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx")
        assert await served.ask() == 200
        assert await slow.is_cut_off()


async def test_an_answer_has_to_be_taken_in_time(limit: Limit) -> None:
    limit("UNREAD_S", 0.2)
    async with serving(2) as served:
        client = await served.client()
        client.send(GET % b"/large")
        assert await client.status() == 200
        await until("it to be cut off", client.cannot_send)


async def test_what_is_held_for_all_is_bounded(limit: Limit) -> None:
    limit("MAX_HELD_BYTES", LARGE * 1.5)
    async with serving(9) as served:
        clients = [await served.client() for _ in range(4)]
        for client in clients:
            client.send(GET % b"/large")
            assert await client.status() == 200
        assert await clients[0].is_cut_off()
        assert len(await clients[-1].reader.readexactly(LARGE)) == LARGE


async def test_headers_without_an_end_are_held_for_few(limit: Limit) -> None:
    limit("MAX_HELD_BYTES", 200_000)
    line = b"X: " + b"x" * 8000 + b"\r\n"
    async with serving(9) as served:
        first, second = await served.client(), await served.client()
        for client in (first, second):
            client.send(b"GET / HTTP/1.1\r\nHost: x\r\n" + line * 16)
            await client.writer.drain()
        assert await first.is_cut_off()
        second.send(b"\r\n")
        assert await second.status() == 200


async def test_requests_ahead_of_their_answers_are_few() -> None:
    async with serving(2) as served:
        client = await served.client()
        client.send(GET % b"/busy")
        await until("it at work", lambda: served.busy == 1)
        client.send(b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 8000 + b"\r\n\r\n")
        client.send(GET % b"/" * 4000)
        assert await client.is_cut_off()


async def test_what_is_no_request_gets_our_headers() -> None:
    async with serving(2) as served:
        client = await served.client()
        client.send(b"\x16\x03\x01 no HTTP\r\n\r\n")
        told = await client.reader.read()
        assert told.startswith(b"HTTP/1.0 400 ")
        assert b"Server: shoal" in told


def test_further_ones_fail_at_once() -> None:
    limit = ConcurrencyLimit(1, "exports")
    with (
        limit.entered(),
        pytest.raises(Problem, match="1 exports under way") as told,
        limit.entered(),
    ):
        pass
    assert told.value.status == 503
    with limit.entered():
        pass
