"""Fetches over HTTP. Whatever a server does, every fetch ends within limits.

Time, headers, the body and its decompressed size are all bounded. Every failure is a FetchError
with a one-line message for people.
"""

from __future__ import annotations

import asyncio
import logging
import re
from base64 import b64encode
from collections.abc import Mapping
from functools import lru_cache
from time import monotonic, perf_counter
from urllib.parse import unquote_to_bytes

import msgspec

from shoal.config import Settings
from shoal.core import urls
from shoal.core.networks import is_private_literal
from shoal.core.task import Task, raw_body
from shoal.errors import BadUrl, ConfigError, FetchError, OwnFault, Refused, TooLate
from shoal.fetch.guard import refusal
from shoal.fetch.http.connection import Connection, Reply
from shoal.fetch.http.failures import cause
from shoal.fetch.http.pool import ConnectionPool
from shoal.fetch.http.tunnels.absolute import answer_of_proxy, is_kept
from shoal.fetch.http.ways import Origin, Way
from shoal.fetch.port import Fetcher, Request, Response, Transfer
from shoal.runtime.patience import Shortage

ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
ACCEPT_ENCODING = "gzip, deflate"
CONNECT_TIMEOUT_S = 10.0

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
FOLLOWING_HEADERS = {
    "content-length": "the body",
    "transfer-encoding": "the body",
    "host": "the URL, as rate, robots.txt and identity do",
}
"""Headers that a task cannot set, and what each is derived from. Any other value would break the
connection, or visit a site under the name of another one."""

MAX_LABEL = 63
MAX_NAME = 253

PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
"""Variables from which other programs take a proxy, in upper or lower case. Shoal ignores them."""

log = logging.getLogger("shoal")

_AFTER_SCHEME = len("https://")
_is_header_name = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+").fullmatch
_is_header_value = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]*").fullmatch


class Authority(msgspec.Struct, frozen=True):
    """The meaning of the part of a URL before its path."""

    origin: Origin
    host: str
    """The Host header: with the port, unless that is the scheme's default."""
    authorization: str
    """The Authorization header made of user and password in the URL. Empty without them."""
    is_valid: bool
    """Whether the host could have an address: URL parsers accept names that DNS does not."""


class HttpFetcher(Fetcher):
    """Fetches over one pool of connections. Must be created while the event loop runs."""

    def __init__(self, settings: Settings) -> None:
        if not _is_header_value(settings.user_agent):
            raise ConfigError(f"user_agent: not a header value: {settings.user_agent!r}")
        self.user_agent = settings.user_agent
        self._is_guarded = not settings.allow_private
        self._timeout_s = settings.timeout_s
        self._too_slow = f"timed out after {settings.timeout_s:g} s"
        self._headers = {
            "User-Agent": settings.user_agent,
            "Accept": ACCEPT,
            "Accept-Encoding": ACCEPT_ENCODING,
        }
        self._usual = _lines(self._headers)
        self._connect_s = min(CONNECT_TIMEOUT_S, self._timeout_s)
        self._pool = ConnectionPool(
            settings.max_body_bytes, is_guarded=self._is_guarded, limit_s=self._connect_s
        )
        self._loop = asyncio.get_running_loop()
        self._shortage = Shortage("no new connections")

    async def fetch(self, request: Request) -> Response:
        """Send the request once and read the answer."""
        started = perf_counter()
        task = request.task
        if task.pool is not None:
            _check_exit(request)
        authority, target = self._address(task.url)
        encoded = self._encode(request, authority, target)
        way = request.route, authority.origin
        connection = self._pool.take(way) or await self._connected(way, request.send_by)
        absolute = connection.absolute
        if absolute is not None:
            encoded = absolute.rewritten(encoded)
        asked = perf_counter()
        left_s = self._timeout_s - (asked - started)
        timer = self._loop.call_later(left_s, connection.time_out, self._too_slow)
        try:
            reply = await connection.ask(encoded, is_head=task.method == "HEAD")
            if absolute is not None:
                _look_at_proxy(connection, reply)
        except FetchError as error:
            error.wire_bytes = connection.sent_bytes + connection.received_bytes
            raise
        finally:
            timer.cancel()
            self._pool.give_back(way, connection)
        transfer = Transfer(
            request.route,
            connection.address,
            connection.sent_bytes,
            connection.received_bytes,
            asked - started,
            connection.first_byte_at - asked,
        )
        whole_s = perf_counter() - started
        return Response(task.url, reply.status, reply.headers, reply.body, whole_s, transfer)

    async def close(self) -> None:
        """Close all connections."""
        await self._pool.close()

    async def _connected(self, way: Way, send_by: float) -> Connection:
        try:
            connection = await self._connect(way)
        except OwnFault as error:
            await self._shortage.pause(error)
            raise
        if monotonic() > send_by:
            self._pool.give_back(way, connection)
            raise TooLate("connecting took longer than the permission to send")
        return connection

    async def _connect(self, way: Way) -> Connection:
        limit_s = self._connect_s
        try:
            # An exit has its own time limit, as it matters which step took so long: http/exits.py.
            async with asyncio.timeout(None if way[0].proxy else limit_s):
                return await self._pool.connect(way)
        except TimeoutError as error:
            is_whole = limit_s == self._timeout_s
            words = self._too_slow if is_whole else f"no connection within {limit_s:g} s"
            raise FetchError(words) from error
        except (OSError, RuntimeError) as error:
            raise FetchError(cause(error)) from error

    def _address(self, url: str) -> tuple[Authority, str]:
        """The authority and the request target of a URL, spelled as a browser would.

        A single parser decides what the host is. That very host is checked and connected to.
        Raises Refused if the URL or its host is not valid, or if the host is private.
        """
        try:
            href = urls.parse(url).href
        except BadUrl as error:
            raise Refused(str(error)) from None
        slash = href.index("/", _AFTER_SCHEME)
        authority = _authority(href[:slash])
        if not authority.is_valid:
            raise Refused(f"not a host name: {authority.origin.host[:60]!r}")
        if self._is_guarded and is_private_literal(authority.origin.host):
            raise refusal(authority.origin.host, authority.origin.host)
        return authority, href[slash:].partition("#")[0]

    def _encode(self, request: Request, authority: Authority, target: str) -> bytes:
        task, cookies = request.task, request.cookies
        _check_method(task.method)
        head = f"{task.method} {target} HTTP/1.1\r\nHost: {authority.host}\r\n"
        is_usual = not task.headers and task.body is None and not cookies and not request.user_agent
        if is_usual and not authority.authorization:
            return f"{head}{self._usual}\r\n".encode()
        body = _body(task)
        headers = self._merged(request, authority)
        if cookies and "cookie" not in headers:
            _check_header("Cookie", cookies)
            headers["cookie"] = "Cookie", cookies
        if task.body is not None:
            headers.setdefault("content-type", ("Content-Type", "application/octet-stream"))
            headers["content-length"] = ("Content-Length", str(len(body)))
        return f"{head}{_lines(dict(headers.values()))}\r\n".encode() + body

    def _merged(self, request: Request, authority: Authority) -> dict[str, tuple[str, str]]:
        """All headers by lower-case name. The task's own headers win."""
        merged = {name.lower(): (name, value) for name, value in self._headers.items()}
        if request.user_agent:
            _check_header("User-Agent", request.user_agent)
            merged["user-agent"] = "User-Agent", request.user_agent
        for name, value in request.task.headers.items():
            _check_header(name, value)
            merged[name.lower()] = name, value
        if authority.authorization:
            if "authorization" in merged:
                raise Refused("this request cannot be sent: a password in the URL, and a header")
            merged["authorization"] = "Authorization", authority.authorization
        return merged


def warn_of_proxies(environ: Mapping[str, str]) -> None:
    """Log which proxy variables are set but ignored. Not their values: these may hold passwords."""
    set_ones = {name.upper() for name, value in environ.items() if value}
    if ignored := [name for name in PROXY_VARIABLES if name in set_ones]:
        names = " and ".join(ignored)
        log.warning(
            "%s: not heeded, pages are fetched without; --proxies names a list of proxies", names
        )


@lru_cache(maxsize=4096)
def _authority(start: str) -> Authority:
    """Take apart the start of a URL, up to its path. `start` comes from the parser."""
    url = urls.parse(f"{start}/")
    is_tls = url.protocol == "https:"
    port = int(url.port or (443 if is_tls else 80))
    host = url.hostname.strip("[]")
    authorization = ""
    if url.username or url.password:
        pair = unquote_to_bytes(url.username) + b":" + unquote_to_bytes(url.password)
        authorization = f"Basic {b64encode(pair).decode()}"
    return Authority(Origin(is_tls, host, port), url.host, authorization, _is_host(host))


def _is_host(host: str) -> bool:
    name = host.removesuffix(".")
    return len(name) <= MAX_NAME and all(0 < len(label) <= MAX_LABEL for label in name.split("."))


def _lines(headers: Mapping[str, str]) -> str:
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items())


def _body(task: Task) -> bytes:
    try:
        return raw_body(task)
    except ValueError as error:
        raise Refused(f"this request cannot be sent: {error}") from error


def _look_at_proxy(connection: Connection, reply: Reply) -> None:
    """Close the connection unless the proxy keeps it. Raises ExitFault if the proxy itself, not the
    host, answered with an error."""
    if not is_kept(reply.headers):
        connection.abort()
    if fault := answer_of_proxy(reply.status, reply.headers):
        raise fault


def _check_exit(request: Request) -> None:
    """Check that a task with a pool has an exit. Raises Refused if not.

    Whatever went wrong before, such a task never leaves from this machine's own address.
    """
    if request.route.proxy is None and not request.route.allows_direct:
        raise Refused(f"no exit of pool {request.task.pool!a:.60} was given for it")


def _check_method(method: str) -> None:
    if method not in METHODS:
        raise Refused(f"method not supported: {method[:20]!a}")


def _check_header(name: str, value: str) -> None:
    shown = ascii(name[:60])
    if name.lower().startswith("proxy-"):
        raise Refused(f"header {shown} cannot be set: it is for proxies, and a host may see it")
    if not _is_header_name(name) or not _is_header_value(value):
        raise Refused(f"not a valid header: {shown}")
    if source := FOLLOWING_HEADERS.get(name.lower()):
        raise Refused(f"header {shown} cannot be set: it follows from {source}")
