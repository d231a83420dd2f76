"""The pages of the hostile server, one function each."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable

from support.hostile_wire import Connection, Request

Page = Callable[[Connection, Request], Awaitable[None]]

PAGES: dict[str, Page] = {}
"""The pages by path. A path that ends with a slash stands for all paths below it."""

HTML = "Content-Type: text/html; charset=utf-8"
CHUNKED = "Transfer-Encoding: chunked"
OK_BODY = b"<html><head><title>ok</title></head><body><h1>ok</h1></body></html>"
GZIPPED = zlib.compress(OK_BODY, wbits=31)
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
LATIN_1_TEXT = "<html><body><p>Käse, Brötchen und Süßes für 3 £</p></body></html>"
MEBIBYTE = 1024**2
GIBIBYTE = 1024**3
BLOCK = bytes(64 * 1024)


def page(path: str) -> Callable[[Page], Page]:
    """A decorator that registers a page at its path."""

    def put(function: Page) -> Page:
        PAGES[path] = function
        return function

    return put


def fixed(body: bytes, *headers: str, status: str = "200 OK") -> Page:
    """A page that is always the same and correctly sent."""

    async def reply(to: Connection, request: Request) -> None:
        await to.reply(request, body, *headers, status=status)

    return reply


not_found = fixed(b"not found", status="404 Not Found")


# Fine, if sometimes odd


PAGES["/ok"] = fixed(OK_BODY, HTML, "Set-Cookie: visited=yes")
PAGES["/empty"] = fixed(b"", HTML)
PAGES["/not-html"] = fixed(PNG, "Content-Type: image/png")
PAGES["/no-charset"] = fixed(LATIN_1_TEXT.encode("latin-1"), "Content-Type: text/html")
PAGES["/wrong-charset"] = fixed(LATIN_1_TEXT.encode("latin-1"), HTML)
PAGES["/gzip"] = fixed(GZIPPED, HTML, "Content-Encoding: gzip")
PAGES["/hard-to-parse"] = fixed(
    zlib.compress(b"<svg></x>" * 100_000, wbits=31), HTML, "Content-Encoding: gzip"
)


@page("/links")
async def links(to: Connection, request: Request) -> None:
    """Links to all pages, for whole crawls."""
    examples = {"/status/": "/status/500", "/redirect-chain/": "/redirect-chain/3"}
    paths = [examples.get(path, path) for path in PAGES]
    anchors = "".join(f'<a href="{path}">{path}</a>\n' for path in paths)
    await to.reply(request, f"<html><body>{anchors}</body></html>".encode(), HTML)


@page("/no-length")
async def no_length(to: Connection, request: Request) -> None:
    """The body ends where the connection does."""
    await to.head(HTML)
    await to.send(OK_BODY)
    to.over = True


@page("/chunked")
async def chunked(to: Connection, request: Request) -> None:
    await to.head(HTML, CHUNKED)
    await to.chunk(OK_BODY[:10])
    await to.chunk(OK_BODY[10:])
    await to.chunk(b"")


@page("/status/")
async def status(to: Connection, request: Request) -> None:
    """/status/503?retry_after=7"""
    line = f"{request.page.rpartition('/')[2]} As You Wish"
    retry_after = request.query("retry_after")
    headers = [f"Retry-After: {retry_after}"] if retry_after else []
    if encoding := request.query("encoding"):
        headers.append(f"Content-Encoding: {encoding}")
    if line.startswith(("1", "204", "304")):
        await to.head(*headers, status=line)
    else:
        await to.reply(request, b"as you wish", *headers, status=line)


# Redirects


def redirect(target: str) -> Page:
    return fixed(b"", f"Location: {target}", status="302 Found")


PAGES["/redirect-self"] = redirect("/redirect-self")
PAGES["/redirect-loop"] = redirect("/redirect-loop-2")
PAGES["/redirect-loop-2"] = redirect("/redirect-loop")
PAGES["/redirect-brotli"] = fixed(
    b"\x0b\x00\x80ok\x03", "Location: /ok", "Content-Encoding: br", status="302 Found"
)


@page("/redirect-chain/")
async def redirect_chain(to: Connection, request: Request) -> None:
    """/redirect-chain/3 is three redirects away from /ok."""
    left = int(request.page.rpartition("/")[2]) - 1
    await redirect(f"/redirect-chain/{left}" if left else "/ok")(to, request)


@page("/redirect-to")
async def redirect_to(to: Connection, request: Request) -> None:
    """/redirect-to?url=..."""
    await redirect(request.query("url", "/ok"))(to, request)


@page("/redirect-private")
async def redirect_private(to: Connection, request: Request) -> None:
    """/redirect-private?address=10.0.0.1:80"""
    await redirect(f"http://{request.query('address', '127.0.0.1:1')}/")(to, request)


# Too much


@page("/endless")
async def endless(to: Connection, request: Request) -> None:
    """A chunked body without end."""
    await to.head(HTML, CHUNKED)
    while True:
        await to.chunk(BLOCK)


@page("/endless-no-length")
async def endless_no_length(to: Connection, request: Request) -> None:
    """A body without end, neither chunked nor with a length."""
    await to.head(HTML)
    while True:
        await to.send(BLOCK)


@page("/huge")
async def huge(to: Connection, request: Request) -> None:
    """Announces a body of 2 GB, and sends it."""
    await to.head(HTML, f"Content-Length: {2 * GIBIBYTE}")
    for _ in range(2 * GIBIBYTE // len(BLOCK)):
        await to.send(BLOCK)


@page("/gzip-bomb")
async def gzip_bomb(to: Connection, request: Request) -> None:
    """A gigabyte of zeros, about one megabyte on the wire."""
    await to.head(HTML, CHUNKED, "Content-Encoding: gzip")
    # A fully flushed block does not depend on earlier ones, so it can be sent again and again.
    packer = zlib.compressobj(9, wbits=-15)
    zeros = bytes(MEBIBYTE)
    packed = packer.compress(zeros) + packer.flush(zlib.Z_FULL_FLUSH)
    await to.chunk(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff")
    checksum = 0
    for _ in range(GIBIBYTE // MEBIBYTE):
        checksum = zlib.crc32(zeros, checksum)
        await to.chunk(packed)
    trailer = checksum.to_bytes(4, "little") + GIBIBYTE.to_bytes(4, "little")
    await to.chunk(packer.flush() + trailer)
    await to.chunk(b"")


@page("/header-flood")
async def header_flood(to: Connection, request: Request) -> None:
    """Headers without end."""
    await to.send(b"HTTP/1.1 200 OK\r\n")
    while True:
        await to.send(b"X-More: and more\r\n" * 100)


@page("/long-header")
async def long_header(to: Connection, request: Request) -> None:
    """One header of a megabyte."""
    await to.send(b"HTTP/1.1 200 OK\r\nX-Long: ")
    for _ in range(1024):
        await to.send(b"x" * 1024)
    await to.send(b"\r\nContent-Length: 0\r\n\r\n")


# Too slow


@page("/drip")
async def drip(to: Connection, request: Request) -> None:
    """A byte a second."""
    await to.head(HTML, "Content-Length: 1000")
    for _ in range(1000):
        await to.send(b"x")
        await asyncio.sleep(1)


@page("/slow-headers")
async def slow_headers(to: Connection, request: Request) -> None:
    """A status line, and then nothing."""
    await to.send(b"HTTP/1.1 200 OK\r\n")
    await to.stall()


@page("/silent")
async def silent(to: Connection, request: Request) -> None:
    """Sends nothing at all."""
    await to.stall()


# Broken


PAGES["/gzip-truncated"] = fixed(GZIPPED[:-10], HTML, "Content-Encoding: gzip")
PAGES["/gzip-corrupt"] = fixed(OK_BODY, HTML, "Content-Encoding: gzip")
PAGES["/brotli"] = fixed(b"\x0b\x00\x80ok\x03", HTML, "Content-Encoding: br")


@page("/closes-mid-body")
async def closes_mid_body(to: Connection, request: Request) -> None:
    await to.head(HTML, f"Content-Length: {len(OK_BODY)}")
    await to.send(OK_BODY[:20])
    to.over = True


@page("/closes-mid-chunk")
async def closes_mid_chunk(to: Connection, request: Request) -> None:
    await to.head(HTML, CHUNKED)
    await to.chunk(OK_BODY[:20])
    to.over = True


@page("/closes-at-once")
async def closes_at_once(to: Connection, request: Request) -> None:
    to.over = True


@page("/reset")
async def reset(to: Connection, request: Request) -> None:
    to.reset()


@page("/garbage")
async def garbage(to: Connection, request: Request) -> None:
    """Not HTTP."""
    await to.send(b"SSH-2.0-OpenSSH_9.2\r\n\x00\x01\x02\r\n\r\n")
    to.over = True


@page("/bad-chunk")
async def bad_chunk(to: Connection, request: Request) -> None:
    """A chunk whose length is not a number."""
    await to.send(f"HTTP/1.1 200 OK\r\n{CHUNKED}\r\n\r\nzz\r\nnonsense\r\n".encode())
    await to.stall()


@page("/length-and-chunks")
async def length_and_chunks(to: Connection, request: Request) -> None:
    """Two lengths that contradict each other."""
    await to.head(HTML, "Content-Length: 5", CHUNKED)
    await to.chunk(OK_BODY)
    await to.chunk(b"")


@page("/two-answers")
async def two_answers(to: Connection, request: Request) -> None:
    """A second response without a request, which waits to be taken as the answer to the next."""
    forged = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"
    await to.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" + forged)
