"""Fetching over HTTP with aiohttp. Whatever a server does, a fetch ends within limits.

Time, headers, body and what the body decompresses to are all bounded. aiohttp's errors become
FetchErrors here, and nowhere else.
"""

from __future__ import annotations

import re
from time import perf_counter

import aiohttp
from yarl import URL

from shoal import urls
from shoal.config import Settings
from shoal.errors import BadUrl, ConfigError, FetchError, Refused
from shoal.fetch.bodies import Body, too_large
from shoal.fetch.causes import cause
from shoal.fetch.dns import ThreadedResolver
from shoal.fetch.guard import GuardedResolver, is_private_literal, refusal
from shoal.fetch.port import Fetcher, Response
from shoal.task import Task

ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
ACCEPT_ENCODING = "gzip, deflate"
CONNECT_TIMEOUT_S = 10.0
DNS_CACHE_S = 60
MAX_HEADER_BYTES = 16 * 1024
MAX_HEADERS = 128

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
FRAMING_HEADERS = frozenset({"content-length", "transfer-encoding"})
"""They follow from the body; any other value would break the connection."""

_is_header_name = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+").fullmatch
_is_header_value = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]*").fullmatch


class HttpFetcher(Fetcher):
    """Fetches with one pool of connections. Must be made while the event loop runs."""

    def __init__(self, settings: Settings) -> None:
        if not _is_header_value(settings.user_agent):
            raise ConfigError(f"user_agent: not a header value: {settings.user_agent!r}")
        self._guarded = not settings.allow_private
        self._max_body_bytes = settings.max_body_bytes
        self._timeout_s = settings.timeout_s
        resolver = ThreadedResolver()
        self._resolver = GuardedResolver(resolver) if self._guarded else resolver
        self._session = aiohttp.ClientSession(
            # How many connections there are is the worker's business: no limit here.
            connector=aiohttp.TCPConnector(
                limit=0, resolver=self._resolver, ttl_dns_cache=DNS_CACHE_S
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={
                "User-Agent": settings.user_agent,
                "Accept": ACCEPT,
                "Accept-Encoding": ACCEPT_ENCODING,
            },
            timeout=aiohttp.ClientTimeout(total=settings.timeout_s, connect=CONNECT_TIMEOUT_S),
            auto_decompress=False,
            max_line_size=MAX_HEADER_BYTES,
            max_field_size=MAX_HEADER_BYTES,
            max_headers=MAX_HEADERS,
            middlewares=(_send_once,),
        )

    async def fetch(self, task: Task) -> Response:
        """Send the request once, read the answer."""
        started = perf_counter()
        try:
            answer = await self._send(task)
            try:
                body = await self._read_body(answer)
            finally:
                # A connection goes back to the pool by itself as soon as its body is complete.
                # One that did not must not be used again.
                if answer.connection is not None:
                    answer.close()
        except TimeoutError as error:
            raise self._too_slow(error) from error
        # uvloop reports some failures to connect as RuntimeError.
        except (aiohttp.ClientError, OSError, RuntimeError) as error:
            raise FetchError(cause(error)) from error
        return Response(task.url, answer.status, answer.headers, body, perf_counter() - started)

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()
        await self._resolver.close()

    async def _send(self, task: Task) -> aiohttp.ClientResponse:
        _check_method(task.method)
        for name, value in task.headers.items():
            _check_header(name, value)
        try:
            return await self._session.request(
                task.method,
                self._address(task.url),
                headers=task.headers or None,
                data=None if task.body is None else task.body.encode(),
                allow_redirects=False,
            )
        except ValueError as error:
            raise Refused(f"this request cannot be sent: {error}") from error

    def _address(self, url: str) -> URL:
        """The URL as it is sent: spelled as a browser would, with a host we may talk to.

        aiohttp gets only this strict spelling, so that it cannot take for the host what was not
        checked as the host.
        """
        try:
            address = URL(urls.parse(url).href, encoded=True)
        except BadUrl as error:
            raise Refused(str(error)) from None
        host = address.raw_host or ""
        if self._guarded and is_private_literal(host):
            raise refusal(host, host)
        return address

    def _too_slow(self, error: TimeoutError) -> FetchError:
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            return FetchError(f"no connection within {CONNECT_TIMEOUT_S:g} s")
        return FetchError(f"timed out after {self._timeout_s:g} s")

    async def _read_body(self, answer: aiohttp.ClientResponse) -> bytes:
        if answer.content.at_eof():
            return b""  # HEAD, 204, 304: whatever length the headers name
        length = answer.content_length
        if length is not None and length > self._max_body_bytes:
            raise too_large(self._max_body_bytes)
        encoding = answer.headers.get("Content-Encoding", "")
        if length is not None and not encoding:
            return await answer.read()
        body = Body(encoding, self._max_body_bytes)
        while data := await answer.content.readany():
            body.feed(data)
        return body.finish()


async def _send_once(
    request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Stop aiohttp from silently sending a request again when a connection breaks.

    The second one would go out without the host's permission. These are the errors after which
    aiohttp repeats; as FetchErrors they pass through it.
    """
    try:
        return await send(request)
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise FetchError(cause(error)) from error


def _check_method(method: str) -> None:
    if method not in METHODS:
        raise Refused(f"method not supported: {method[:20]!a}")


def _check_header(name: str, value: str) -> None:
    shown = ascii(name[:60])
    if not _is_header_name(name) or not _is_header_value(value):
        raise Refused(f"not a valid header: {shown}")
    if name.lower() in FRAMING_HEADERS:
        raise Refused(f"header {shown} cannot be set: it follows from the body")
