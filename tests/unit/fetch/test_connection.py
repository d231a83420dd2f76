"""Answers as they come over the wire, in whatever pieces."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import FetchError, TooLarge
from shoal.fetch.http.connection import BYTES_PER_TURN, MAX_BESIDE_BYTES
from support.wire import Scene

LIMIT = 1000


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
        scene = Scene(LIMIT).receive(*pieces)
        assert (scene.result().status, scene.result().body) == (200, body)
        assert scene.connection.is_reusable
        assert "Link" not in scene.result().headers

    asyncio.run(check())


async def test_one_after_the_other() -> None:
    scene = Scene(LIMIT).receive(plain(b"first"))
    assert scene.result().body == b"first"
    second = scene.connection.ask(b" and more", is_head=False)
    scene.receive(plain(b"second", b"X-Own: a"))
    assert second.result().body == b"second"
    assert second.result().headers["x-own"] == "a"
    assert "x-own" not in scene.result().headers
    assert scene.wire.sent == b"request and more"


NOBODY_ASKED = b"HTTP/1.1 200 OK\r\nX-Forged: yes\r\nContent-Length: 6\r\n\r\nforged"


@pytest.mark.parametrize(
    "wire",
    [
        plain(b"abc", b"Connection: close"),
        plain(b"abc").replace(b"1.1", b"1.0"),
        plain(b"abc") + NOBODY_ASKED,
        plain(b"abc") + NOBODY_ASKED[:1],
        plain(b"abc") + NOBODY_ASKED[:30],
        plain(b"abc") + b"\r\n" + NOBODY_ASKED[:-1],
        plain(b"abc") + b"\0",
        plain(b"abc") + b"abc" * 20_000,
        CHUNKED.replace(b"5", b"3").replace(b"2\r\nde\r\n", b"") + NOBODY_ASKED[:20],
    ],
)
async def test_connections_that_are_not_used_again(wire: bytes) -> None:
    scene = Scene(LIMIT).receive(wire)
    assert scene.result().body == b"abc"
    assert scene.wire.is_closed
    assert not scene.connection.is_reusable
    assert "X-Forged" not in scene.result().headers


@pytest.mark.parametrize("length", [1, 30, len(NOBODY_ASKED)])
async def test_what_comes_unasked_closes_the_connection(length: int) -> None:
    scene = Scene(LIMIT).receive(plain(b"abc"))
    assert scene.connection.is_reusable
    scene.receive(NOBODY_ASKED[:length])
    assert scene.wire.is_closed
    assert not scene.connection.is_reusable


async def test_a_connection_that_the_server_closed_while_it_was_idle() -> None:
    scene = Scene(LIMIT).receive(plain(b"abc")).close()
    assert not scene.connection.is_reusable
    with pytest.raises(FetchError, match="server closed the connection"):
        await scene.connection.ask(b"request", is_head=False)


@pytest.mark.parametrize("header", [b"", b"Transfer-Encoding: identity\r\n"])
async def test_a_body_without_a_length_ends_with_the_connection(header: bytes) -> None:
    scene = Scene(LIMIT).receive(b"HTTP/1.1 200 OK\r\n" + header + b"\r\nab", b"c").close()
    assert scene.result().body == b"abc"


async def test_unless_that_ends_with_an_error() -> None:
    scene = Scene(LIMIT).receive(b"HTTP/1.1 200 OK\r\n\r\nab").close(ConnectionResetError(104, "x"))
    with pytest.raises(FetchError, match="before the body was complete"):
        scene.result()


async def test_head() -> None:
    scene = Scene(LIMIT, is_head=True).receive(b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n")
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
        (b"HTTP/1.1 200 OK\r\nA: " + b"x" * MAX_BESIDE_BYTES, "headers too large", FetchError),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "not a valid HTTP response", FetchError),
        (
            b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
            "not a",
            FetchError,
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "not a valid HTTP", FetchError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "not a", FetchError),
        (b"HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n", "not a valid HTTP", FetchError),
        (b"HTTP/1.1 103 Hint\r\nContent-Length: 2\r\n\r\nno" + plain(b"a"), "not a", FetchError),
    ],
)
async def test_what_is_refused(wire: bytes, says: str, kind: type[FetchError]) -> None:
    pieces = [wire[start : start + 4096] for start in range(0, len(wire), 4096)]
    scene = Scene(LIMIT).receive(*pieces)
    with pytest.raises(kind, match=says):
        scene.result()
    assert scene.wire.is_closed


@given(st.binary(max_size=300))
def test_garbage_is_an_error_or_no_answer(wire: bytes) -> None:
    async def check() -> None:
        scene = Scene(LIMIT).receive(b"HTTP/1.1 200 OK\r\n" + wire).close()
        assert scene.answer.done()
        assert isinstance(scene.answer.exception(), FetchError | None)

    asyncio.run(check())


# Answers without a body, or with one that nobody needs


@pytest.mark.parametrize("encoding", [b"br", b"gzip", b"gzip, gzip, gzip"])
@pytest.mark.parametrize(
    "wire",
    [
        b"HTTP/1.1 204 No Content\r\nContent-Encoding: %s\r\n\r\n",
        b"HTTP/1.1 304 Not Modified\r\nContent-Encoding: %s\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\nContent-Length: 0\r\n\r\n",
    ],
)
async def test_nothing_can_be_encoded_in_any_way(wire: bytes, encoding: bytes) -> None:
    scene = Scene(LIMIT).receive(wire % encoding)
    assert scene.result().body == b""
    assert scene.connection.is_reusable


async def test_head_of_something_that_we_could_not_read() -> None:
    scene = Scene(LIMIT, is_head=True)
    scene.receive(plain(b"", b"Content-Encoding: br"))
    assert scene.result().headers["Content-Encoding"] == "br"


BROKEN_BODIES = {
    "unknown encoding": b"Content-Encoding: br\r\nContent-Length: 5\r\n\r\nhello",
    "corrupt": b"Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello",
    "too large": b"Content-Length: 99999\r\n\r\nhello",
    "larger than it says": b"\r\n" + b"x" * (LIMIT + 1),
    "bad chunk": b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    "ends early": b"Content-Length: 50\r\n\r\nhello",
}


@pytest.mark.parametrize("status", [302, 404, 429, 503])
@pytest.mark.parametrize("rest", BROKEN_BODIES.values(), ids=BROKEN_BODIES)
async def test_only_the_body_of_a_success_is_needed(status: int, rest: bytes) -> None:
    head = b"HTTP/1.1 %d Something\r\nLocation: /\r\nRetry-After: 7\r\n" % status
    scene = Scene(LIMIT).receive(head + rest).close()
    assert (scene.result().status, scene.result().body) == (status, b"")
    assert scene.result().headers["Retry-After"] == "7"
    assert not scene.connection.is_reusable


async def test_a_status_counts_though_its_body_never_ends() -> None:
    scene = Scene(LIMIT).receive(b"HTTP/1.1 503 Later\r\nContent-Length: 9\r\n\r\n")
    scene.connection.time_out("timed out")
    assert scene.result().status == 503


# No more than is allowed, and no more in one turn than is fair

CHUNKS_FOLLOW = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
ENDLESS = {
    "headers": (b"HTTP/1.1 200 OK\r\n", b"A: b\r\n"),
    "one header": (b"HTTP/1.1 200 OK\r\nA: ", b"b"),
    "one name": (b"HTTP/1.1 200 OK\r\n", b"A"),
    "folded": (b"HTTP/1.1 200 OK\r\nA: b\r\n", b" b\r\n"),
    "reason": (b"HTTP/1.1 200 ", b"OK"),
    "empty lines": (b"", b"\r\n"),
    "hints": (b"", b"HTTP/1.1 103 Hint\r\nA: b\r\n\r\n"),
    "go on": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "extension": (CHUNKS_FOLLOW + b"1;", b"e"),
    "extensions": (CHUNKS_FOLLOW, b"1;" + b"e" * 100 + b"\r\na\r\n"),
    "zeros of a length": (CHUNKS_FOLLOW, b"0"),
    "trailers": (CHUNKS_FOLLOW + b"1\r\na\r\n0\r\n", b"A: b\r\n"),
    "one trailer": (CHUNKS_FOLLOW + b"1\r\na\r\n0\r\nA: ", b"b"),
    "folded trailer": (CHUNKS_FOLLOW + b"1\r\na\r\n0\r\nA: b\r\n", b" b\r\n"),
}


@pytest.mark.parametrize(("start", "more"), ENDLESS.values(), ids=ENDLESS)
@pytest.mark.parametrize("size", [1000, BYTES_PER_TURN])
async def test_what_is_not_body_ends_too(start: bytes, more: bytes, size: int) -> None:
    scene = Scene(100 * MAX_BESIDE_BYTES).receive(start)
    piece, pieces = more * (size // len(more)), 0
    while not scene.wire.is_closed and pieces * len(piece) < 10 * MAX_BESIDE_BYTES:
        scene.receive(piece)
        pieces += 1
    with pytest.raises(FetchError, match=r"^response headers too large$|^not a valid"):
        scene.result()
    assert len(piece) * (pieces - 1) <= 1.2 * MAX_BESIDE_BYTES


@pytest.mark.parametrize("size", [1, 2, 7])
async def test_a_body_in_tiny_chunks_takes_no_more_memory(size: int) -> None:
    limit = 512 * 1024
    chunk = b"%x\r\n%s\r\n" % (size, b"x" * size)
    scene = Scene(limit).receive(CHUNKS_FOLLOW)
    tracemalloc.start()
    try:
        for _ in range(limit // size // 100):
            scene.receive(chunk * 100)
        scene.receive(b"0\r\n\r\n")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(scene.result().body) == limit // size // 100 * 100 * size
    assert peak < 4 * limit


async def test_a_body_that_comes_byte_by_byte_takes_no_more_memory() -> None:
    limit = 64 * 1024
    scene = Scene(limit).receive(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % limit)
    tracemalloc.start()
    try:
        for _ in range(limit):
            scene.receive(b"x")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(scene.result().body) == limit
    assert peak < 4 * limit


@pytest.mark.parametrize("encoding", ["identity", "", "gzip"])
async def test_an_idle_connection_holds_no_body(encoding: str) -> None:
    size = 1024**2
    body = gzip.compress(b"x" * size) if encoding == "gzip" else b"x" * size
    wire = plain(body, *([f"Content-Encoding: {encoding}".encode()] if encoding else []))
    tracemalloc.start()
    try:
        scene = Scene(size)
        for start in range(0, len(wire), BYTES_PER_TURN):
            scene.receive(wire[start : start + BYTES_PER_TURN])
        assert len(scene.result().body) == size
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert scene.connection.is_reusable
    assert held < 1.1 * size  # The answer itself, which the test still has.


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
async def test_a_connection_that_failed_holds_no_body(encoding: str) -> None:
    """Nor does the error, whose traceback led to the body."""
    limit = 1024**2
    body = gzip.compress(bytes(2 * limit)) if encoding == "gzip" else bytes(2 * limit)
    header = b"HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\n\r\n" % encoding.encode()
    tracemalloc.start()
    try:
        scene = Scene(limit).receive(header)
        for start in range(0, len(body), BYTES_PER_TURN):
            scene.receive(body[start : start + BYTES_PER_TURN])
        error = scene.answer.exception()
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert isinstance(error, TooLarge)
    assert held < limit / 4


async def test_much_at_once_is_read_in_turns() -> None:
    """Others have their turn in between, and nothing more is taken from the wire meanwhile."""
    body = b"x" * (BYTES_PER_TURN * 7)
    scene = Scene(len(body))
    scene.receive(plain(body))
    for _ in range(7):  # The headers take a part of the first.
        assert not scene.answer.done()
        assert scene.wire.is_paused
        await asyncio.sleep(0)
    assert scene.answer.done()
    assert not scene.wire.is_paused
    assert scene.connection.is_reusable
    assert scene.result().body == body


async def test_a_connection_that_ends_while_much_waits_to_be_read() -> None:
    body = b"x" * (BYTES_PER_TURN * 3)
    scene = Scene(len(body)).receive(b"HTTP/1.1 200 OK\r\n\r\n" + body).close()
    assert scene.result().body == body


async def test_who_gives_up_leaves_nothing_to_be_read() -> None:
    scene = Scene(10**6).receive(plain(b"x" * (BYTES_PER_TURN * 3)))
    scene.connection.abort()
    for _ in range(5):
        await asyncio.sleep(0)
    assert not scene.answer.done()


async def test_what_is_behind_an_answer_in_the_next_turn_is_not_for_the_next_request() -> None:
    body = b"x" * (BYTES_PER_TURN - 10)
    scene = Scene(len(body)).receive(plain(body) + NOBODY_ASKED * 1000)
    await scene.answer
    assert scene.wire.is_closed
    assert not scene.connection.is_reusable
