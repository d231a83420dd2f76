"""One connection to a server: a request goes out, an answer comes in, one after the other.

llhttp (by httptools) reads the wire. Whatever comes, no more is kept than the limits allow: the
length of headers, of the body, and of what the body decompresses to.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from multidict import CIMultiDict

from shoal.errors import FetchError
from shoal.fetch.bodies import Body, too_large
from shoal.fetch.causes import CLOSED, CLOSED_EARLY, HEADERS_TOO_LARGE, NOT_HTTP, cause

MAX_HEADERS = 128
MAX_HEADER_BYTES = 16 * 1024
"""Of one header."""
MAX_HEAD_BYTES = 256 * 1024
"""Of all headers, with what arrives together with their end."""


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: CIMultiDict[str]
    body: bytes


class Connection(asyncio.Protocol):
    """A connection. `ask` is called only while no other answer is awaited."""

    def __init__(self, max_body_bytes: int) -> None:
        self._max_body_bytes = max_body_bytes
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[Answer] | None = None
        self._is_head_request = False
        self.is_reusable = False
        """Whether another request may be sent on it."""
        self._parser = HttpResponseParser(self)
        # What browsers put up with, and many servers rely on.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True,
            lenient_optional_cr_before_lf=True,
            lenient_spaces_after_chunk_size=True,
        )
        self._begin_answer()

    def ask(self, request: bytes, *, is_head: bool) -> asyncio.Future[Answer]:
        """Send a request. The answer may be a FetchError, and the connection is over then."""
        self._answer = self._loop.create_future()
        self._is_head_request = is_head
        self.is_reusable = False
        self._begin_answer()
        if self._transport is None:
            self._fail(FetchError(CLOSED))
        else:
            self._transport.write(request)
        return self._answer

    def time_out(self, message: str) -> None:
        """The answer took too long."""
        error = FetchError(message)
        error.__cause__ = TimeoutError()
        self._fail(error)

    def abort(self) -> None:
        """Close it at once."""
        self.is_reusable = False
        if self._transport is not None:
            self._transport.abort()

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._answer is None or self._answer.done():
            self.abort()  # Nobody has asked.
            return
        if not self._has_headers:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self._fail(FetchError(NOT_HTTP))
        if not self._has_headers and self._head_bytes > MAX_HEAD_BYTES:
            self._fail(FetchError(HEADERS_TOO_LARGE))

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self.is_reusable = False
        if self._ends_with_connection and error is None:
            self._finish()
        elif self._has_headers:
            self._fail(FetchError(CLOSED_EARLY))
        else:
            self._fail(FetchError(cause(error) if error else CLOSED), error)

    # What llhttp calls

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))
        too_long = len(name) + len(value) > MAX_HEADER_BYTES
        if too_long or len(self._headers) > MAX_HEADERS:
            self._fail(FetchError(HEADERS_TOO_LARGE))

    def on_headers_complete(self) -> None:
        self._status = self._parser.get_status_code()
        if self._status < 200:  # "Go on", "here are hints": the answer is still to come.
            self._headers.clear()
            return
        self._has_headers = True
        self._named.extend((_text(name), _text(value)) for name, value in self._headers)
        if self._is_head_request:
            self._finish()
            return
        length = int(self._named.get("Content-Length") or 0)
        if length > self._max_body_bytes:
            self._fail(too_large(self._max_body_bytes))
        is_chunked = "chunked" in self._named.get("Transfer-Encoding", "").lower()
        self._is_framed = is_chunked or "Content-Length" in self._named
        encoding = self._named.get("Content-Encoding", "")
        if encoding or not length:
            self._open_body(encoding)

    def on_body(self, data: bytes) -> None:
        if self._body is None:
            self._pieces.append(data)
            return
        try:
            self._body.feed(data)
        except FetchError as error:
            self._fail(error)

    def on_message_complete(self) -> None:
        if self._has_headers:
            self._finish(is_reusable=self._parser.should_keep_alive())

    # The answer

    def _begin_answer(self) -> None:
        self._headers: list[tuple[bytes, bytes]] = []
        self._named: CIMultiDict[str] = CIMultiDict()
        self._status = 0
        self._has_headers = False
        self._is_framed = True
        self._head_bytes = 0
        self._body: Body | None = None
        self._pieces: list[bytes] = []

    def _open_body(self, encoding: str) -> None:
        try:
            self._body = Body(encoding, self._max_body_bytes)
        except FetchError as error:
            self._fail(error)

    @property
    def _ends_with_connection(self) -> bool:
        return self._has_headers and not self._is_framed

    def _finish(self, *, is_reusable: bool = False) -> None:
        if self._answer is None or self._answer.done():
            return
        try:
            body = b"".join(self._pieces) if self._body is None else self._body.finish()
        except FetchError as error:
            self._fail(error)
            return
        self.is_reusable = is_reusable
        self._answer.set_result(Answer(self._status, self._named, body))
        if not is_reusable:
            self.abort()

    def _fail(self, error: FetchError, cause: Exception | None = None) -> None:
        """The first failure counts. After it, nothing more is read."""
        if self._answer is not None and not self._answer.done():
            error.__cause__ = error.__cause__ or cause
            self._answer.set_exception(error)
        self.abort()


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
