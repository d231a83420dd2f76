"""Bytes on the wire, counted by the connection, in whatever pieces they come."""

from __future__ import annotations

import gzip
from time import perf_counter

import pytest

from shoal.fetch.http.connection import BYTES_PER_TURN
from support.wire import Scene

LIMIT = 10 * BYTES_PER_TURN
PACKED = gzip.compress(b"x" * 5000)
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nTrailer: a\r\n\r\n"
)


def plain(body: bytes, *headers: bytes) -> bytes:
    lines = [b"HTTP/1.1 200 OK", b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


@pytest.mark.parametrize(
    "wire",
    [
        plain(b"abc"),
        plain(b""),
        plain(PACKED, b"Content-Encoding: gzip"),
        CHUNKED,
        b"HTTP/1.1 100 Continue\r\n\r\n" + plain(b"abc"),
    ],
)
@pytest.mark.parametrize("piece", [1, 7, 10_000])
async def test_all_that_came_is_counted(wire: bytes, piece: int) -> None:
    scene = Scene(LIMIT)
    scene.receive(*(wire[start : start + piece] for start in range(0, len(wire), piece)))
    assert scene.result().status == 200
    assert scene.connection.received_bytes == len(wire)
    assert scene.connection.sent_bytes == len(scene.wire.sent)


async def test_a_body_that_is_read_in_turns_is_counted_once() -> None:
    wire = plain(b"x" * 3 * BYTES_PER_TURN)
    scene = Scene(LIMIT).receive(wire)
    await scene.answer
    assert scene.connection.received_bytes == len(wire)


async def test_every_request_begins_at_nothing() -> None:
    scene = Scene(LIMIT).receive(plain(b"first"))
    second = scene.connection.ask(b"the second request", is_head=False)
    connection = scene.connection
    assert (connection.sent_bytes, connection.received_bytes) == (18, 0)
    scene.receive(plain(b"2"))
    assert second.done()
    assert (connection.sent_bytes, connection.received_bytes) == (18, len(plain(b"2")))


async def test_on_a_connection_that_is_lost_nothing_is_sent() -> None:
    scene = Scene(LIMIT).receive(plain(b"first")).close()
    with pytest.raises(Exception, match="closed"):
        await scene.ask()
    assert (scene.connection.sent_bytes, scene.connection.received_bytes) == (0, 0)


async def test_the_first_byte_counts_for_its_time() -> None:
    wire = plain(b"abc")
    before = perf_counter()
    scene = Scene(LIMIT).receive(wire[:1])
    between = perf_counter()
    scene.receive(wire[1:])
    assert before <= scene.connection.first_byte_at <= between
