"""Tricks of the hostile server: answers designed to be expensive, or to be misread.

`integration/test_fetch_hostile.py` measures what they cost.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable
from functools import cache

from support.hostile_pages import BLOCK, CHUNKED, HTML, OK_BODY, Page
from support.hostile_wire import Connection, Request

TRICKS: dict[str, Page] = {}
"""The tricks by path."""

LIMIT = 1024**2
"""The longest body that the client accepts."""

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKS = OK + b"Transfer-Encoding: chunked\r\n\r\n"
LENGTH = b"Content-Length: 2\r\n\r\nok"
BURST = 64 * 1024
HOURS = 500_000
"""A number of pieces that would take hours to drip."""


def trick(path: str) -> Callable[[Page], Page]:
    """A decorator that registers a trick at its path."""

    def put(function: Page) -> Page:
        TRICKS[path] = function
        return function

    return put


def says(wire: bytes, *, stays: bool = False) -> Page:
    """A page that sends these bytes and hangs up, or if `stays`, waits for the next request."""

    async def send(to: Connection, request: Request) -> None:
        await to.send(wire)
        to.over = not stays

    return send


def never_ends(start: bytes, more: bytes) -> Page:
    """A page that sends `start`, and then `more` without end, as fast as the client reads."""
    burst = more * max(BURST // len(more), 1)

    async def send(to: Connection, request: Request) -> None:
        await to.send(start)
        while True:
            await to.send(burst)

    return send


def drips(start: bytes, more: bytes) -> Page:
    """A page that sends `start`, and then `more` so slowly that it would take hours."""

    async def send(to: Connection, request: Request) -> None:
        await to.send(start)
        for _ in range(HOURS):
            await to.send(more)
            await asyncio.sleep(0.02)

    return send


# Without end, but not in the body

TRICKS["/endless-hints"] = never_ends(b"", b"HTTP/1.1 103 Hint\r\nLink: </a>\r\n\r\n")
TRICKS["/endless-continue"] = never_ends(b"", b"HTTP/1.1 100 Continue\r\n\r\n")
TRICKS["/endless-fold"] = never_ends(OK + b"A: b\r\n", b" b\r\n")
TRICKS["/endless-name"] = never_ends(OK, b"A")
TRICKS["/endless-reason"] = never_ends(b"HTTP/1.1 200 ", b"OK ")
TRICKS["/endless-empty-lines"] = never_ends(b"", b"\r\n")
TRICKS["/endless-trailers"] = never_ends(CHUNKS + b"2\r\nok\r\n0\r\n", b"A: b\r\n")
TRICKS["/endless-trailer"] = never_ends(CHUNKS + b"2\r\nok\r\n0\r\nA: ", b"b")
TRICKS["/endless-folded-trailer"] = never_ends(CHUNKS + b"2\r\nok\r\n0\r\nA: b\r\n", b" b\r\n")
TRICKS["/endless-extension"] = never_ends(CHUNKS + b"2;", b"e")
TRICKS["/endless-extensions"] = never_ends(CHUNKS, b"1;" + b"e" * 100 + b"\r\na\r\n")
TRICKS["/endless-length"] = never_ends(CHUNKS, b"0")

# Bodies that are small on the wire, or cut into many pieces

TRICKS["/huge-chunk"] = never_ends(CHUNKS + b"fffffffffffffff\r\n", BLOCK)
TRICKS["/endless-redirect"] = never_ends(
    b"HTTP/1.1 302 Found\r\nLocation: /ok\r\n\r\n", b"not needed"
)
TRICKS["/endless-members"] = never_ends(
    OK + b"Content-Encoding: gzip\r\n\r\n", zlib.compress(b"", wbits=31)
)
TRICKS["/endless-nothing"] = never_ends(
    OK + b"Content-Encoding: deflate\r\n\r\n\x78\x9c", b"\0\0\0\xff\xff"
)
TRICKS["/three-layers"] = says(OK + b"Content-Encoding: gzip, gzip, gzip\r\n" + LENGTH)


@trick("/harmless")
async def harmless(to: Connection, request: Request) -> None:
    """A body of the greatest length allowed, sent correctly."""
    await to.head(HTML, f"Content-Length: {LIMIT}")
    for _ in range(LIMIT // len(BLOCK)):
        await to.send(BLOCK)


@trick("/tiny-chunks")
async def tiny_chunks(to: Connection, request: Request) -> None:
    """A body of the greatest length allowed, in chunks of two bytes."""
    await to.head(HTML, CHUNKED)
    burst = b"2\r\nok\r\n" * (BURST // 8)
    for _ in range(LIMIT // 2 // (BURST // 8)):
        await to.send(burst)
    await to.chunk(b"")


@trick("/tiny-gzip-chunks")
async def tiny_gzip_chunks(to: Connection, request: Request) -> None:
    """A gzip body in chunks of one byte."""
    await to.head(HTML, CHUNKED, "Content-Encoding: gzip")
    packed = zlib.compress(OK_BODY * 1000, 0, wbits=31)
    for start in range(0, len(packed), 5000):
        await to.send(b"".join(b"1\r\n%c\r\n" % byte for byte in packed[start : start + 5000]))
    await to.chunk(b"")


@cache
def packed_twice() -> bytes:
    """32 megabytes of zeros, compressed twice: a few hundred bytes."""
    inner, outer = zlib.compressobj(9, wbits=31), zlib.compressobj(9, wbits=31)
    pieces = [outer.compress(inner.compress(bytes(LIMIT))) for _ in range(32)]
    return b"".join((*pieces, outer.compress(inner.flush()), outer.flush()))


@trick("/layered-bomb")
async def layered_bomb(to: Connection, request: Request) -> None:
    await to.head(HTML, CHUNKED, "Content-Encoding: gzip, gzip")
    await to.chunk(packed_twice())
    await to.chunk(b"")


# Lies about the length

TRICKS["/length-too-short"] = says(OK + LENGTH + b" and much more" * 1000, stays=True)
TRICKS["/length-too-long"] = says(OK + b"Content-Length: 50\r\n\r\nok")
TRICKS["/negative-length"] = says(OK + b"Content-Length: -1\r\n\r\nok")
TRICKS["/length-of-twenty-digits"] = says(OK + b"Content-Length: 99999999999999999999\r\n\r\nok")
TRICKS["/no-number"] = says(OK + b"Content-Length: 0x2\r\n\r\nok")
TRICKS["/two-lengths"] = says(OK + b"Content-Length: 9\r\n" + LENGTH)
TRICKS["/a-list-of-lengths"] = says(OK + b"Content-Length: 2, 2\r\n\r\nok")
TRICKS["/chunks-and-length"] = says(
    OK + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\nok\r\n0\r\n\r\n"
)
TRICKS["/negative-chunk"] = says(CHUNKS + b"-2\r\nok\r\n0\r\n\r\n")
TRICKS["/chunk-too-long"] = says(CHUNKS + b"4\r\nok\r\n0\r\n\r\n")
TRICKS["/chunk-of-twenty-digits"] = says(CHUNKS + b"f" * 20 + b"\r\nok\r\n0\r\n\r\n")
TRICKS["/no-last-chunk"] = says(CHUNKS + b"2\r\nok\r\n")
TRICKS["/half-a-trailer"] = says(CHUNKS + b"2\r\nok\r\n0\r\nA: b\r\n")
TRICKS["/unknown-coding"] = says(
    OK + b"Transfer-Encoding: chunked, odd\r\n\r\n2\r\nok\r\n0\r\n\r\n"
)

# More answers than requests

TRICKS["/second-answer"] = says(OK + LENGTH + OK + b"X-Forged: yes\r\n" + LENGTH, stays=True)
TRICKS["/half-a-second-answer"] = says(OK + LENGTH + OK + b"X-Forged: yes\r\nConte", stays=True)
TRICKS["/first-byte-of-a-second"] = says(OK + LENGTH + b"H", stays=True)
TRICKS["/garbage-behind"] = says(OK + LENGTH + b"\0\1\2garbage", stays=True)
TRICKS["/body-of-a-hint"] = says(b"HTTP/1.1 103 Hint\r\n" + LENGTH + OK + LENGTH, stays=True)
TRICKS["/body-of-nothing"] = says(b"HTTP/1.1 204 No Content\r\n" + LENGTH, stays=True)
TRICKS["/upgrade"] = says(
    b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x05hello"
)

# Not quite HTTP

TRICKS["/http-0.9"] = says(b"<html>ok</html>")
TRICKS["/http-2"] = says(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64")
TRICKS["/http-2-line"] = says(b"HTTP/2 200\r\n" + LENGTH)
TRICKS["/tls"] = says(b"\x15\x03\x01\x00\x02\x02\x46")
TRICKS["/icy"] = says(b"ICY 200 OK\r\n" + LENGTH)
TRICKS["/status-of-two-digits"] = says(b"HTTP/1.1 20 OK\r\n" + LENGTH)
TRICKS["/status-of-four-digits"] = says(b"HTTP/1.1 2000 OK\r\n" + LENGTH)
TRICKS["/status-below-100"] = says(b"HTTP/1.1 099 OK\r\n" + LENGTH)
TRICKS["/status-of-letters"] = says(b"HTTP/1.1 abc OK\r\n" + LENGTH)
TRICKS["/no-reason"] = says(b"HTTP/1.1 200\r\n" + LENGTH, stays=True)
TRICKS["/bare-lf"] = says(b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok", stays=True)
TRICKS["/bare-cr"] = says(b"HTTP/1.1 200 OK\rContent-Length: 2\r\rok")
TRICKS["/nul-in-value"] = says(OK + b"A: \0\r\n" + LENGTH, stays=True)
TRICKS["/nul-in-name"] = says(OK + b"A\0: b\r\n" + LENGTH)
TRICKS["/no-colon"] = says(OK + b"just a line\r\n" + LENGTH)
TRICKS["/folded"] = says(OK + b"A: b\r\n c\r\n" + LENGTH, stays=True)
TRICKS["/not-text"] = says(OK + b"A: \xff\xfe\r\n" + LENGTH, stays=True)
TRICKS["/half-a-status"] = says(b"HTTP/1.1 2")
TRICKS["/half-a-header"] = says(OK + b"Content-Le")
TRICKS["/only-empty-lines"] = says(b"\r\n\r\n\r\n")


@trick("/reset-in-the-body")
async def reset_in_the_body(to: Connection, request: Request) -> None:
    await to.send(OK + b"Content-Length: 50\r\n\r\nok")
    to.reset()


# A little at a time

TRICKS["/drips-headers"] = drips(OK, b"A: b\r\n")
TRICKS["/drips-a-header"] = drips(OK + b"A: ", b"b")
TRICKS["/drips-hints"] = drips(b"", b"HTTP/1.1 103 Hint\r\n\r\n")
TRICKS["/drips-empty-lines"] = drips(b"", b"\r\n")
TRICKS["/drips-chunks"] = drips(CHUNKS, b"1\r\na\r\n")
TRICKS["/drips-an-extension"] = drips(CHUNKS + b"1;", b"e")
TRICKS["/drips-trailers"] = drips(CHUNKS + b"1\r\na\r\n0\r\n", b"A: b\r\n")
TRICKS["/drips-a-body"] = drips(OK + b"\r\n", b"x")
TRICKS["/drips-compressed"] = drips(
    OK + b"Content-Encoding: deflate\r\n\r\n\x78\x9c", b"\0\0\0\xff\xff"
)
