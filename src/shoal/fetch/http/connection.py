"""One connection to a server: sends requests and reads their answers, one at a time.

llhttp (through httptools) parses the answers. Whatever the server sends, no more is kept than the
limits allow, and no more than `BYTES_PER_TURN` is read in one turn of the event loop, so that other
connections are not kept waiting.
"""

from __future__ import annotations

import asyncio
import select
from time import perf_counter
from typing import cast

import msgspec
from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from multidict import CIMultiDict

from shoal.errors import BadAnswer, FetchError
from shoal.fetch.http.bodies import Body, too_large
from shoal.fetch.http.failures import CLOSED, CLOSED_EARLY, HEADERS_TOO_LARGE, NOT_HTTP, cause
from shoal.fetch.http.tunnels.absolute import Absolute

MAX_HEADERS = 128
MAX_HEADER_BYTES = 16 * 1024
"""The maximum size of one header, name and value."""

MAX_BESIDE_BYTES = 64 * 1024
"""The maximum size of everything but the body: status lines, headers, chunk sizes and their
extensions, trailers."""

BESIDE_PER_BODY_BYTE = 8
"""How many other bytes each byte of the body may bring along without counting towards that limit.
A byte in a chunk of its own brings five."""

BYTES_PER_TURN = 32 * 1024


class Reply(msgspec.Struct):
    """One answer as it came over a connection: status, headers and body."""

    status: int
    headers: CIMultiDict[str]
    body: bytes


class Connection(asyncio.Protocol):
    """A connection to a server. `ask` may only be called while no other answer is awaited."""

    def __init__(self, max_body_bytes: int) -> None:
        self._max_body_bytes = max_body_bytes
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[Reply] | None = None
        self._is_head_request = False
        self._incoming: select.poll | None = None
        self.is_reusable = False
        """Whether another request may be sent on this connection."""
        self.address = ""
        """The IP address of the other end. Empty if that is a proxy."""
        self.absolute: Absolute | None = None
        """How to rewrite requests for a proxy that forwards them. None: the host itself reads
        them."""
        self._before = 0, 0
        """Bytes sent and received before the next request."""
        self.first_byte_at = 0.0
        self._unread = memoryview(b"")
        """Bytes that arrived and are not parsed yet: they wait for the next turn of the loop."""
        self._arrived = bytearray()
        """The body so far; if it is compressed, only the part in the piece being read."""
        self.on_body = self._arrived.extend  # Called for every chunk: there may be millions.
        self._parser = HttpResponseParser(self)
        # Leniencies that browsers have and many servers rely on.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True,
            lenient_optional_cr_before_lf=True,
            lenient_spaces_after_chunk_size=True,
        )
        self._begin_answer()

    def ask(self, request: bytes, *, is_head: bool) -> asyncio.Future[Reply]:
        """Send a request. The future may fail with a FetchError; the connection is closed then."""
        self._answer = self._loop.create_future()
        self._is_head_request = is_head
        self.is_reusable = False
        self._begin_answer()
        self.sent_bytes, self.received_bytes = self._before
        self._before = 0, 0
        if self._transport is None:
            self._fail(FetchError(CLOSED))
        else:
            self._transport.write(request)
            self.sent_bytes += len(request)
        return self._answer

    def count_before(self, sent: int, received: int) -> None:
        """Add the bytes that setting up the connection took to those of the first request."""
        self._before = sent, received

    def is_quiet(self) -> bool:
        """Whether nothing has arrived since the last answer, not even the end of the connection."""
        if self._incoming is None:
            if self._transport is None:
                return False
            self._incoming = select.poll()
            self._incoming.register(self._transport.get_extra_info("socket"), select.POLLIN)
        return not self._incoming.poll(0)

    def time_out(self, message: str) -> None:
        """Fail the pending answer because it took too long."""
        error = FetchError(message)
        error.__cause__ = TimeoutError()
        self._fail(error)

    def abort(self) -> None:
        """Close the connection at once."""
        self.is_reusable = False
        self._unread = memoryview(b"")
        if self._transport is not None:
            self._transport.abort()

    # Callbacks of asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self.is_reusable = True
        peer = transport.get_extra_info("peername")
        self.address = peer[0] if peer else ""

    def data_received(self, data: bytes) -> None:
        if self._answer is None or self._answer.done():
            self.abort()  # The server sent data without being asked.
            return
        if not self.first_byte_at:
            self.first_byte_at = perf_counter()
        self.received_bytes += len(data)
        if len(data) > BYTES_PER_TURN:
            self._unread = memoryview(data)
            if self._transport is not None:
                self._transport.pause_reading()
            self._read_on()
        else:
            self._read(data)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self.is_reusable = False
        if self._unread:
            self._read(self._unread)
        if self._ends_with_connection and error is None:
            self._finish()
        elif self._has_headers:
            self._fail(FetchError(CLOSED_EARLY))
        else:
            self._fail(FetchError(cause(error) if error else CLOSED), error)

    # Callbacks of llhttp. An exception from them ends the parsing and the connection.

    def on_message_begin(self) -> None:
        if self._has_headers:
            raise BadAnswer(NOT_HTTP)  # A second answer right after the awaited one.

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))
        too_long = len(name) + len(value) > MAX_HEADER_BYTES
        if too_long or len(self._headers) > MAX_HEADERS:
            raise self._fail(BadAnswer(HEADERS_TOO_LARGE))

    def on_headers_complete(self) -> None:
        self._status = self._parser.get_status_code()
        if self._status < 100:
            raise BadAnswer(NOT_HTTP)
        if self._status < 200:  # Informational (100 Continue, 103 Early Hints): the answer follows.
            self._headers.clear()
            return
        self._has_headers = True
        self._named.extend((_text(name), _text(value)) for name, value in self._headers)
        if self._is_head_request:
            self._finish()
            return
        if int(self._named.get("Content-Length") or 0) > self._max_body_bytes:
            raise self._fail(too_large(self._max_body_bytes))
        is_chunked = "chunked" in self._named.get("Transfer-Encoding", "").lower()
        self._is_framed = is_chunked or "Content-Length" in self._named
        self._encoding = self._named.get("Content-Encoding", "")

    def on_message_complete(self) -> None:
        if self._arrived and not self._has_headers:
            raise BadAnswer(NOT_HTTP)  # A 1xx response with a body, which would be ambiguous.
        if self._has_headers:
            self._finish(is_reusable=self._parser.should_keep_alive() and not self._unread)

    # The answer

    def _begin_answer(self) -> None:
        self.sent_bytes = 0
        self.received_bytes = 0
        self.first_byte_at = 0.0
        self._headers: list[tuple[bytes, bytes]] = []
        self._named: CIMultiDict[str] = CIMultiDict()
        self._status = 0
        self._has_headers = False
        self._is_framed = True
        self._beside = 0
        self._weighed = 0
        self._encoding = ""
        self._body: Body | None = None
        self._arrived.clear()

    @property
    def _ends_with_connection(self) -> bool:
        return self._has_headers and not self._is_framed

    def _finish(self, *, is_reusable: bool = False) -> None:
        if self._answer is None or self._answer.done():
            return
        try:
            self._take_body()
            body = bytes(self._arrived) if self._body is None else self._body.finish()
        except FetchError as error:
            self._fail(error)
            return
        self._forget_body()  # The connection may be idle for a long time.
        self.is_reusable = is_reusable
        self._answer.set_result(Reply(self._status, self._named, body))
        if not is_reusable:
            self.abort()

    def _fail(self, error: FetchError, cause: Exception | None = None) -> FetchError:
        """End the answer with an error and close the connection. Only the first failure counts.

        Only the body of a success is needed. If the status is not a success, that is the answer,
        whatever is wrong with its body.
        """
        if self._answer is not None and not self._answer.done():
            if self._has_headers and not 200 <= self._status < 300:
                self._answer.set_result(Reply(self._status, self._named, b""))
            else:
                error.__cause__ = error.__cause__ or cause
                # Frames in the traceback hold parts of the body.
                self._answer.set_exception(error.with_traceback(None))
        self._forget_body()
        self.abort()
        return error

    def _forget_body(self) -> None:
        """Free the memory of the body at once. After a failure, the error and the connection refer
        to each other until a garbage collection, and there may be hundreds of such bodies."""
        self._arrived.clear()
        self._body = None

    # Reading

    def _read_on(self) -> None:
        """Parse the next part of the unread bytes; the rest waits for the next turn of the loop."""
        if not self._unread:
            return  # The connection was closed in between.
        part, self._unread = self._unread[:BYTES_PER_TURN], self._unread[BYTES_PER_TURN:]
        self._read(part)
        if self._unread:
            self._loop.call_soon(self._read_on)
        elif self._transport is not None:
            self._transport.resume_reading()

    def _read(self, data: bytes | memoryview) -> None:
        try:
            self._parser.feed_data(data)
            if self._answer is not None and not self._answer.done():
                self._weigh(len(data))
                self._take_body()
        except (HttpParserError, HttpParserUpgrade):
            self._fail(BadAnswer(NOT_HTTP))
        except FetchError as error:
            self._fail(error)

    def _weigh(self, received: int) -> None:
        """Limit everything that is not body, wherever in the answer it is. Raises BadAnswer."""
        in_body = len(self._arrived) - self._weighed
        beside = self._beside + received - in_body - in_body * BESIDE_PER_BODY_BYTE
        self._beside = max(beside, 0)
        self._weighed += in_body
        if beside > MAX_BESIDE_BYTES:
            raise BadAnswer(HEADERS_TOO_LARGE)

    def _take_body(self) -> None:
        """Check the length of the body so far, and decompress it if needed. Raises FetchError."""
        if not self._encoding:
            if len(self._arrived) > self._max_body_bytes:
                raise too_large(self._max_body_bytes)
        elif self._arrived:
            if self._body is None:
                self._body = Body(self._encoding, self._max_body_bytes)
            self._body.feed(bytes(self._arrived))
            self._arrived.clear()
            self._weighed = 0


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
