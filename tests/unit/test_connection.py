"""Answers as they come over the wire, in whatever pieces."""

from __future__ import annotations

import asyncio
import gzip
from itertools import pairwise
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import FetchError, TooLarge
from shoal.fetch.connection import MAX_HEAD_BYTES, Answer, Connection

LIMIT = 1000


class Wire(asyncio.Transport):
    """The other end, as a test plays it."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.is_closed = False

    def write(self, data: object) -> None:
        self.sent += cast("bytes", data)

    def abort(self) -> None:
        self.is_closed = True


class Scene:
    """A connection on which a request was sent."""

    def __init__(self, *, is_head: bool = False) -> None:
        self.wire = Wire()
        self.connection = Connection(LIMIT)
        self.connection.connection_made(self.wire)
        self.answer = self.connection.ask(b"request", is_head=is_head)

    def receive(self, *pieces: bytes) -> Scene:
        for piece in pieces:
            if not self.wire.is_closed:
                self.connection.data_received(piece)
        return self

    def close(self, error: Exception | None = None) -> Scene:
        self.connection.connection_lost(error)
        return self

    def result(self) -> Answer:
        assert self.answer.done(), "the answer is not complete"
        return self.answer.result()


def plain(body: bytes, *headers: bytes) -> bytes:
    lines = [b"HTTP/1.1 200 OK", b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


PACKED = gzip.compress(b"x" * 500)
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
ANSWERS = [
    (plain(b"abc"), b"abc"),
    (plain(b""), b""),
    (plain(PACKED, b"Content-Encoding: gzip"), b"x" * 500),
    (CHUNKED, b"abcde"),
    (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" + plain(b"abc"),
        b"abc",
    ),
    (b"HTTP/1.1 200 OK\nContent-Length: 3\n\nabc", b"abc"),
]


@given(st.sampled_from(ANSWERS), st.lists(st.integers(0, 200), max_size=8))
def test_an_answer_is_the_same_in_any_pieces(answer: tuple[bytes, bytes], cuts: list[int]) -> None:
    async def check() -> None:
        wire, body = answer
        places = sorted({0, len(wire), *(cut % len(wire) for cut in cuts)})
        pieces = [wire[start:end] for start, end in pairwise(places)]
        scene = Scene().receive(*pieces)
        assert (scene.result().status, scene.result().body) == (200, body)
        assert scene.connection.is_reusable
        assert "Link" not in scene.result().headers

    asyncio.run(check())


async def test_one_after_the_other() -> None:
    scene = Scene().receive(plain(b"first"))
    assert scene.result().body == b"first"
    second = scene.connection.ask(b" and more", is_head=False)
    scene.receive(plain(b"second", b"X-Own: a"))
    assert second.result().body == b"second"
    assert second.result().headers["x-own"] == "a"
    assert "x-own" not in scene.result().headers
    assert scene.wire.sent == b"request and more"


@pytest.mark.parametrize(
    "wire",
    [
        plain(b"abc", b"Connection: close"),
        plain(b"abc").replace(b"1.1", b"1.0"),
        plain(b"abc") + plain(b"nobody asked"),
    ],
)
async def test_connections_that_are_not_used_again(wire: bytes) -> None:
    scene = Scene().receive(wire)
    assert scene.result().body == b"abc"
    scene.receive(b"") if scene.wire.is_closed else scene.receive(b"more")
    assert scene.wire.is_closed
    assert not scene.connection.is_reusable


async def test_what_comes_unasked_closes_the_connection() -> None:
    scene = Scene().receive(plain(b"abc"))
    scene.receive(plain(b"nobody asked"))
    assert scene.wire.is_closed
    assert not scene.connection.is_reusable


async def test_a_connection_that_the_server_closed_while_it_was_idle() -> None:
    scene = Scene().receive(plain(b"abc")).close()
    assert not scene.connection.is_reusable
    with pytest.raises(FetchError, match="server closed the connection"):
        await scene.connection.ask(b"request", is_head=False)


@pytest.mark.parametrize("header", [b"", b"Transfer-Encoding: identity\r\n"])
async def test_a_body_without_a_length_ends_with_the_connection(header: bytes) -> None:
    scene = Scene().receive(b"HTTP/1.1 200 OK\r\n" + header + b"\r\nab", b"c").close()
    assert scene.result().body == b"abc"


async def test_unless_that_ends_with_an_error() -> None:
    scene = Scene().receive(b"HTTP/1.1 200 OK\r\n\r\nab").close(ConnectionResetError(104, "x"))
    with pytest.raises(FetchError, match="before the body was complete"):
        scene.result()


async def test_head() -> None:
    scene = Scene(is_head=True).receive(b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n")
    assert scene.result().headers["Content-Length"] == "99999"
    assert not scene.connection.is_reusable


@pytest.mark.parametrize(
    ("wire", "says", "kind"),
    [
        (plain(b"x" * (LIMIT + 1)), "body larger than", TooLarge),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (LIMIT + 1), "body larger than", TooLarge),
        (plain(gzip.compress(b"x" * 5000), b"Content-Encoding: gzip"), "decompressed", TooLarge),
        (b"HTTP/1.1 200 OK\r\nA: " + b"x" * 20_000 + b"\r\n\r\n", "headers too large", FetchError),
        (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200 + b"\r\n", "headers too large", FetchError),
        (b"HTTP/1.1 200 OK\r\nA: " + b"x" * MAX_HEAD_BYTES, "headers too large", FetchError),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "not a valid HTTP response", FetchError),
        (
            b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
            "not a",
            FetchError,
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "not a valid HTTP", FetchError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "not a", FetchError),
    ],
)
async def test_what_is_refused(wire: bytes, says: str, kind: type[FetchError]) -> None:
    pieces = [wire[start : start + 4096] for start in range(0, len(wire), 4096)]
    scene = Scene().receive(*pieces)
    with pytest.raises(kind, match=says):
        scene.result()
    assert scene.wire.is_closed


@given(st.binary(max_size=300))
def test_garbage_is_an_error_or_no_answer(wire: bytes) -> None:
    async def check() -> None:
        scene = Scene().receive(b"HTTP/1.1 200 OK\r\n" + wire).close()
        assert scene.answer.done()
        assert isinstance(scene.answer.exception(), FetchError | None)

    asyncio.run(check())
