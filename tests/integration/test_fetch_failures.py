"""Fetching from a server that misbehaves: one clear error, bounded, and nothing left behind."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import nullcontext
from typing import NamedTuple

import pytest

from shoal.core.failures import FailureKind, kind_of
from shoal.errors import FetchError, TooLarge
from shoal.fetch.port import Fetcher
from shoal.runtime.eventloop import run
from support.dns_server import NameServer
from support.fetching import LIMIT, fetching, request
from support.hostile import HostileServer
from support.hostile_pages import OK_BODY

CLOSED_EARLY = "server closed the connection before the body was complete"
TOO_LARGE = f"body larger than {LIMIT} bytes (max_body_bytes)"
SOON_S = 0.3


@pytest.fixture
async def server() -> AsyncIterator[HostileServer]:
    async with HostileServer() as server:
        yield server


@pytest.fixture
async def fetcher() -> AsyncIterator[Fetcher]:
    async with fetching() as fetcher:
        yield fetcher


# What goes wrong


class Failure(NamedTuple):
    path: str
    reason: str
    kind: FailureKind = FailureKind.CONNECTION
    retryable: bool = True


PROTOCOL = FailureKind.PROTOCOL

FAILURES = [
    Failure("/endless", TOO_LARGE, FailureKind.TOO_LARGE, False),
    Failure("/endless-no-length", TOO_LARGE, FailureKind.TOO_LARGE, False),
    Failure("/huge", TOO_LARGE, FailureKind.TOO_LARGE, False),
    Failure("/gzip-bomb", f"decompressed {TOO_LARGE}", FailureKind.TOO_LARGE, False),
    Failure("/gzip-truncated", "gzip: the compressed data ends too early", PROTOCOL),
    Failure("/gzip-corrupt", "gzip: the compressed data is corrupt", PROTOCOL),
    Failure("/brotli", "cannot read Content-Encoding: 'br'", PROTOCOL, False),
    Failure("/header-flood", "response headers too large", PROTOCOL),
    Failure("/long-header", "response headers too large", PROTOCOL),
    Failure("/closes-mid-body", CLOSED_EARLY),
    Failure("/closes-mid-chunk", CLOSED_EARLY),
    Failure("/closes-at-once", "server closed the connection"),
    Failure("/reset", "connection reset by peer"),
    Failure("/garbage", "not a valid HTTP response", PROTOCOL),
    Failure("/bad-chunk", "not a valid HTTP response", PROTOCOL),
    Failure("/length-and-chunks", "not a valid HTTP response", PROTOCOL),
]

TIMEOUTS = [
    Failure(path, f"timed out after {SOON_S} s", FailureKind.TIMEOUT)
    for path in ("/drip", "/slow-headers", "/silent")
]


async def check_failure(server: HostileServer, fetcher: Fetcher, failure: Failure) -> None:
    with pytest.raises(FetchError) as caught:
        await fetcher.fetch(request(server.url(failure.path)))
    assert kind_of(caught.value) is failure.kind
    assert str(caught.value) == failure.reason
    assert caught.value.retryable is failure.retryable


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.path)
async def test_a_failure(server: HostileServer, fetcher: Fetcher, failure: Failure) -> None:
    await check_failure(server, fetcher, failure)


@pytest.mark.parametrize("failure", TIMEOUTS, ids=lambda failure: failure.path)
async def test_a_timeout(server: HostileServer, failure: Failure) -> None:
    async with fetching(timeout_s=SOON_S) as fetcher:
        await check_failure(server, fetcher, failure)


def test_the_same_on_the_event_loop_of_the_worker() -> None:
    async def check_all() -> None:
        async with HostileServer() as server:
            for failures, timeout_s in ((FAILURES, 30.0), (TIMEOUTS, SOON_S)):
                async with fetching(timeout_s=timeout_s) as fetcher:
                    for failure in failures:
                        await check_failure(server, fetcher, failure)

    run(check_all())


@pytest.mark.parametrize("path", ["/closes-at-once", "/reset", "/closes-mid-body"])
async def test_no_request_is_repeated(server: HostileServer, fetcher: Fetcher, path: str) -> None:
    """Neither on a new connection nor on an old one, where HTTP clients like to try again."""
    for paths in ([path], ["/ok", path]):
        server.requests.clear()
        for each in paths:
            with nullcontext() if each == "/ok" else pytest.raises(FetchError):
                await fetcher.fetch(request(server.url(each)))
        assert server.paths == paths
    assert server.requests[0].connection == server.requests[1].connection


@pytest.mark.parametrize("path", ["/endless", "/endless-no-length", "/huge", "/gzip-bomb"])
async def test_memory_is_bounded(server: HostileServer, fetcher: Fetcher, path: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge):
            await fetcher.fetch(request(server.url(path)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * LIMIT
    # Besides what was read, there is what the system's buffers hold: a few megabytes at most.
    assert server.bytes_sent < 64 * LIMIT


async def test_connection_refused(fetcher: Fetcher, unused_port: int) -> None:
    with pytest.raises(FetchError, match=r"^connection refused$") as caught:
        await fetcher.fetch(request(f"http://127.0.0.1:{unused_port}/"))
    assert caught.value.retryable
    assert kind_of(caught.value) is FailureKind.CONNECTION


@pytest.fixture
async def unused_port() -> int:
    async with HostileServer() as server:
        return server.port


@pytest.mark.parametrize("private", [True, False])
async def test_dns_fails(private: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async with NameServer({}) as server:
        server.is_used_by(monkeypatch)
        async with fetching(allow_private=private) as fetcher:
            with pytest.raises(FetchError, match=r"^DNS: name not found$") as caught:
                await fetcher.fetch(request("http://no-such-name.invalid/"))
        assert caught.value.retryable
        assert kind_of(caught.value) is FailureKind.DNS


async def test_tls_with_somebody_who_does_not_speak_it(fetcher: Fetcher) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    plain = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = plain.sockets[0].getsockname()[1]
    with pytest.raises(FetchError, match=r"^TLS: [a-z0-9 ]+$") as caught:
        await fetcher.fetch(request(f"https://127.0.0.1:{port}/"))
    assert kind_of(caught.value) is FailureKind.TLS
    plain.close()
    await plain.wait_closed()


# Connections


async def test_connections_are_kept(server: HostileServer, fetcher: Fetcher) -> None:
    for path in ("/ok", "/chunked", "/gzip", "/empty", "/status/204", "/redirect-self", "/brotli"):
        try:
            await fetcher.fetch(request(server.url(path)))
        except FetchError:
            assert path == "/brotli"
    assert {request.connection for request in server.requests} == {0}


@pytest.mark.parametrize("path", ["/endless", "/huge", "/gzip-bomb", "/bad-chunk"])
async def test_a_cut_off_connection_is_not_used_again(
    server: HostileServer, fetcher: Fetcher, path: str
) -> None:
    with pytest.raises(FetchError):
        await fetcher.fetch(request(server.url(path)))
    assert (await fetcher.fetch(request(server.url("/ok")))).body == OK_BODY
    assert [request.connection for request in server.requests] == [0, 1]


async def test_an_answer_nobody_asked_for_is_not_taken_for_the_next(
    server: HostileServer, fetcher: Fetcher
) -> None:
    assert (await fetcher.fetch(request(server.url("/two-answers")))).body == b"ok"
    assert (await fetcher.fetch(request(server.url("/ok")))).body == OK_BODY


async def test_a_cancelled_fetch_leaves_nothing_behind(
    server: HostileServer, fetcher: Fetcher
) -> None:
    fetching = asyncio.create_task(fetcher.fetch(request(server.url("/silent"))))
    await server.arrival("/silent")
    fetching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await fetching
    assert (await fetcher.fetch(request(server.url("/ok")))).body == OK_BODY
    assert [request.connection for request in server.requests] == [0, 1]


async def test_close_leaves_nothing_open(server: HostileServer) -> None:
    async with fetching() as fetcher:
        pages = (fetcher.fetch(request(server.url("/ok"))) for _ in range(5))
        await asyncio.gather(*pages)
        assert len(server.connections) == 5
    del fetcher
    gc.collect()  # Anything left open warns now, and warnings are errors.
