"""The fetch port: one request goes out, one response comes back. Both are values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from math import inf

import msgspec

from shoal.core.proxies import ProxyAddress
from shoal.core.set_cookie import lines_in
from shoal.core.task import Task


class Route(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """The way that a request takes to its host. Requests share connections only on one route."""

    name: str
    """`direct`, or the id of an exit and its session. Safe to show."""
    proxy: ProxyAddress | None = None
    """The proxy, or the address of this machine, to leave by. None: straight to the host."""
    keeps_connections: bool = True
    """Whether a connection may serve more than one request. False for a gateway that gives each
    connection another address."""
    tunnels_all: bool = False
    """Whether plain http goes through a tunnel too."""
    allows_direct: bool = False
    """Whether a task with a pool may leave without an exit."""


DIRECT = Route("direct")
"""The route straight from this machine to the host. Tasks with a pool never take it."""


class Request(msgspec.Struct, frozen=True):
    """What a fetcher is asked to do: the task, its deadline and its route."""

    task: Task
    send_by: float = inf
    """The monotonic time until which the request may be sent."""
    route: Route = DIRECT
    cookies: str = ""
    """The Cookie header. If the task has its own, that wins."""
    user_agent: str = ""
    """The User-Agent header. If the task has its own, that wins. Empty: the fetcher's."""

    def __repr__(self) -> str:
        return f"Request({self.task.method} {self.task.url} by {self.route.name})"


class Transfer(msgspec.Struct, frozen=True, gc=False):
    """How a request and its response went over the network."""

    route: Route = DIRECT
    address: str = ""
    """The IP address of the host that was connected to. Empty through a proxy."""
    sent_bytes: int = 0
    """The request line, headers and body. The first request on a connection through a proxy also
    counts the talk with the proxy before it, here and in `received_bytes`."""
    received_bytes: int = 0
    """Everything received until the response was complete: status lines, headers, chunk sizes, the
    body as sent, still compressed. Neither number includes what TLS and TCP add."""
    connect_s: float = 0.0
    """Time to get a connection, with the DNS look-up: close to zero for a kept connection."""
    first_byte_s: float = 0.0
    """The time from sending the request to the first byte of the response."""


class Response(msgspec.Struct):
    """The answer of a server, whatever its status."""

    url: str
    """The task's URL: a redirect is a response of its own and is never followed here."""
    status: int
    headers: Mapping[str, str]
    """Headers by case-insensitive name. Bytes that are not UTF-8 become surrogate escapes. If a
    header came several times, the first one counts: see `set_cookies`."""
    body: bytes
    """The complete body, decompressed."""
    duration_s: float
    """The time from the call of `fetch` to the end of the body."""
    transfer: Transfer = Transfer()

    @property
    def set_cookies(self) -> Sequence[str]:
        """All Set-Cookie lines, in order."""
        return lines_in(self.headers)

    @property
    def wire_bytes(self) -> int:
        """Bytes over the network in both directions, without TLS and TCP."""
        return self.transfer.sent_bytes + self.transfer.received_bytes


class Fetcher(ABC):
    """Sends exactly one request per call: each needs its own permission, so none is repeated."""

    user_agent: str = ""
    """The User-Agent for requests that do not set their own."""

    @abstractmethod
    async def fetch(self, request: Request) -> Response:
        """Fetch the page of the request's task. Raises FetchError or a subclass: Refused, TooLarge;
        TooLate if nothing could be sent in time, OwnFault if this machine could not send at all,
        ExitFault if an exit did not get the request to the host.

        The message is one line for people, `retryable` says whether trying again may help, and
        `wire_bytes` how much went over the network in vain.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close all connections. Calls to `fetch` must have ended or been cancelled."""
