"""Every trick of the hostile server: how it ends, and that it costs no more than it may.

Memory, the work in one turn of the event loop, and time all have bounds: as counts, or beside a
harmless answer.
"""

from __future__ import annotations

import asyncio
import time
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from shoal.errors import FetchError, TooLarge
from shoal.fetch.http import pool
from shoal.fetch.http.connection import BYTES_PER_TURN, MAX_BESIDE_BYTES, Connection
from shoal.fetch.port import Fetcher, Response
from shoal.runtime.eventloop import run
from support.fetching import LIMIT, fetching, request
from support.hostile import HostileServer
from support.hostile_pages import OK_BODY
from support.hostile_tricks import TRICKS

TIMEOUT_S = 120.0
SOON_S = 0.5

HEADERS = "response headers too large"
NOT_HTTP = "not a valid HTTP response"
CLOSED = "server closed the connection"
CLOSED_EARLY = "server closed the connection before the body was complete"
TOO_LARGE = f"body larger than {LIMIT} bytes (max_body_bytes)"

ANSWERED = {
    "/harmless": (200, LIMIT),
    "/tiny-chunks": (200, LIMIT),
    "/tiny-gzip-chunks": (200, len(OK_BODY) * 1000),
    "/length-too-short": (200, 2),
    "/second-answer": (200, 2),
    "/half-a-second-answer": (200, 2),
    "/first-byte-of-a-second": (200, 2),
    "/garbage-behind": (200, 2),
    "/body-of-nothing": (204, 0),
    "/endless-redirect": (302, 0),
    "/no-reason": (200, 2),
    "/bare-lf": (200, 2),
    "/nul-in-value": (200, 2),
    "/folded": (200, 2),
    "/not-text": (200, 2),
}
"""The status, and how long the body is."""

FAILED = {
    **dict.fromkeys((path for path in TRICKS if path.startswith("/endless-")), HEADERS),
    "/endless-members": "gzip: more than 1000 files in one body",
    "/endless-nothing": TOO_LARGE,
    "/huge-chunk": TOO_LARGE,
    "/layered-bomb": f"decompressed {TOO_LARGE}",
    "/three-layers": "cannot read Content-Encoding: 'gzip, gzip, gzip'",
    "/half-a-status": CLOSED,
    "/half-a-header": CLOSED,
    "/only-empty-lines": CLOSED,
    "/length-too-long": CLOSED_EARLY,
    "/no-last-chunk": CLOSED_EARLY,
    "/half-a-trailer": CLOSED_EARLY,
    "/unknown-coding": CLOSED_EARLY,
    "/reset-in-the-body": CLOSED_EARLY,
    **dict.fromkeys(
        (
            *("/negative-length", "/length-of-twenty-digits", "/no-number", "/two-lengths"),
            *("/a-list-of-lengths", "/chunks-and-length", "/negative-chunk", "/chunk-too-long"),
            *("/chunk-of-twenty-digits", "/body-of-a-hint", "/upgrade", "/http-0.9", "/http-2"),
            *("/http-2-line", "/tls", "/icy", "/status-of-two-digits", "/status-of-four-digits"),
            *("/status-below-100", "/status-of-letters", "/bare-cr", "/nul-in-name", "/no-colon"),
        ),
        NOT_HTTP,
    ),
}
del FAILED["/endless-redirect"]

TOO_SLOW = [path for path in TRICKS if path.startswith("/drips-")]


class Gauge:
    """What the client reads: how much in all, how much in one turn, and how long it takes."""

    def __init__(self) -> None:
        self.read = 0
        self.most_in_a_turn = 0
        self.cpu_s = 0.0
        self.longest_turn_s = 0.0
        self._turn_read = 0
        self._turn_s = 0.0

    def note(self, size: int, cpu_s: float) -> None:
        """A piece was read."""
        if not self._turn_read:
            asyncio.get_running_loop().call_soon(self._end_turn)
        self._turn_read += size
        self._turn_s += cpu_s

    def _end_turn(self) -> None:
        self.read += self._turn_read
        self.cpu_s += self._turn_s
        self.most_in_a_turn = max(self.most_in_a_turn, self._turn_read)
        self.longest_turn_s = max(self.longest_turn_s, self._turn_s)
        self._turn_read, self._turn_s = 0, 0.0


class GaugedConnection(Connection):
    """Tells its gauge what it reads."""

    gauge = Gauge()

    def _read(self, data: bytes | memoryview) -> None:
        began = time.thread_time()
        super()._read(data)
        self.gauge.note(len(data), time.thread_time() - began)


@pytest.fixture
def gauge(monkeypatch: pytest.MonkeyPatch) -> Gauge:
    monkeypatch.setattr(pool, "Connection", GaugedConnection)
    monkeypatch.setattr(GaugedConnection, "gauge", gauge := Gauge())
    return gauge


@pytest.fixture
async def server() -> AsyncIterator[HostileServer]:
    async with HostileServer() as server:
        yield server


@pytest.fixture
async def fetcher() -> AsyncIterator[Fetcher]:
    async with fetching(timeout_s=TIMEOUT_S) as fetcher:
        yield fetcher


async def ending(fetcher: Fetcher, server: HostileServer, path: str) -> Response | FetchError:
    try:
        return await fetcher.fetch(request(server.url(path)))
    except FetchError as error:
        return error


def check(path: str, ended: Response | FetchError) -> None:
    if isinstance(ended, FetchError):
        assert str(ended) == FAILED.get(path), path
        assert isinstance(ended, TooLarge) == FAILED[path].endswith(TOO_LARGE)
    else:
        assert (ended.status, len(ended.body)) == ANSWERED[path], path
        assert "X-Forged" not in ended.headers


QUICK = [*ANSWERED, *FAILED]
LONG = [path for path in QUICK if path.startswith(("/endless", "/huge", "/tiny", "/layered"))]


def test_every_trick_is_expected_here() -> None:
    assert sorted([*ANSWERED, *FAILED, *TOO_SLOW]) == sorted(TRICKS)


@pytest.mark.parametrize("path", QUICK)
async def test_how_it_ends_and_what_is_read_of_it(
    server: HostileServer, fetcher: Fetcher, gauge: Gauge, path: str
) -> None:
    began = time.monotonic()
    check(path, await ending(fetcher, server, path))
    assert time.monotonic() - began < TIMEOUT_S / 2
    assert gauge.most_in_a_turn <= BYTES_PER_TURN
    most = 2 * MAX_BESIDE_BYTES if FAILED.get(path) == HEADERS else 4 * LIMIT
    assert gauge.read <= most
    # And it has harmed nobody else.
    assert (await fetcher.fetch(request(server.url("/ok")))).body == OK_BODY


def test_the_same_on_the_event_loop_of_the_worker(gauge: Gauge) -> None:
    async def check_all() -> None:
        async with HostileServer() as server, fetching(timeout_s=TIMEOUT_S) as fetcher:
            for path in QUICK:
                check(path, await ending(fetcher, server, path))
                assert (await fetcher.fetch(request(server.url("/ok")))).body == OK_BODY

    run(check_all())
    # The end of what came before, and the beginning of what has just come.
    assert gauge.most_in_a_turn <= 2 * BYTES_PER_TURN


@pytest.mark.parametrize("path", TOO_SLOW)
async def test_what_comes_too_slowly(server: HostileServer, path: str) -> None:
    async with fetching(timeout_s=SOON_S) as fetcher:
        began = time.monotonic()
        ended = await ending(fetcher, server, path)
        assert str(ended) == f"timed out after {SOON_S:g} s"
        assert SOON_S <= time.monotonic() - began < TIMEOUT_S / 2


@pytest.mark.parametrize("path", LONG)
async def test_memory(server: HostileServer, fetcher: Fetcher, path: str) -> None:
    """The server's own is in it too: it needs two megabytes at most."""
    tracemalloc.start()
    try:
        check(path, await ending(fetcher, server, path))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 6 * LIMIT


@pytest.mark.parametrize("path", LONG)
async def test_work(server: HostileServer, fetcher: Fetcher, gauge: Gauge, path: str) -> None:
    """In all, and in a single turn of the event loop, beside the longest body that is allowed."""
    costs = []
    for _ in range(3):
        gauge.cpu_s = 0.0
        check("/harmless", await ending(fetcher, server, "/harmless"))
        costs.append(gauge.cpu_s)
    gauge.cpu_s = gauge.longest_turn_s = 0.0
    check(path, await ending(fetcher, server, path))
    assert gauge.cpu_s < 500 * min(costs)
    assert gauge.longest_turn_s < 100 * min(costs)


# TLS


def endless_tls(record: bytes) -> bytes:
    """As many records as there can be of a kind."""
    return (record[:3] + len(record[3:]).to_bytes(2) + record[3:]) * (LIMIT // len(record))


@pytest.mark.parametrize(
    "wire",
    [
        bytes(LIMIT),
        b"HTTP/1.1 400 Bad Request\r\n\r\n" * 1000,
        endless_tls(b"\x16\x03\x03" + b"\x02\xff\xff\xff" + bytes(16_000)),
        endless_tls(b"\x15\x03\x03" + b"\x01\x00"),
        endless_tls(b"\x17\x03\x03" + bytes(16_000)),
    ],
    ids=["zeros", "plain", "long message", "warnings", "data"],
)
async def test_garbage_instead_of_tls(fetcher: Fetcher, wire: bytes) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        with suppress(OSError):
            while True:
                writer.write(wire)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    began = time.monotonic()
    tracemalloc.start()
    try:
        with pytest.raises(FetchError, match=r"^TLS: |^connection reset|^server closed"):
            await fetcher.fetch(request(url))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert time.monotonic() - began < TIMEOUT_S / 2
    assert peak < 6 * LIMIT
    server.close()
    await server.wait_closed()


async def test_silence_instead_of_tls(server: HostileServer) -> None:
    """The server waits for a request, in the clear."""
    async with fetching(timeout_s=SOON_S) as fetcher:
        with pytest.raises(FetchError, match=f"^timed out after {SOON_S:g} s$"):
            await fetcher.fetch(request(server.url("/ok").replace("http:", "https:")))
