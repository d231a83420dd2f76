"""The fetch port: a request goes out, one response comes back. Both are values."""

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
    """`direct`, or the id of an exit and its session. It may be shown."""
    proxy: ProxyAddress | None = None
    """What it goes by. None: from this machine to the host, with nobody between."""
    keeps_connections: bool = True
    """Whether a connection may serve more than one request. Not at a gateway that gives each
    connection another address."""
    tunnels_all: bool = False
    """Whether plain http goes through a tunnel as well."""
    allows_direct: bool = False
    """Whether a task with a pool may leave without an exit."""


DIRECT = Route("direct")
"""From this machine to the host, with nobody between. Tasks with a pool never take it."""


class Request(msgspec.Struct, frozen=True):
    """What a fetcher is asked to do: which task, until when, and by which route."""

    task: Task
    send_by: float = inf
    """The monotonic moment until which it may be sent."""
    route: Route = DIRECT
    cookies: str = ""
    """The Cookie header, unless the task has one of its own: that wins."""
    user_agent: str = ""
    """The User-Agent, unless the task has one of its own. Empty: the fetcher's."""

    def __repr__(self) -> str:
        return f"Request({self.task.method} {self.task.url} by {self.route.name})"


class Transfer(msgspec.Struct, frozen=True, gc=False):
    """How a request and its response went over the network."""

    route: Route = DIRECT
    address: str = ""
    """The IP address of the host, as it was connected to. Empty by a proxy."""
    sent_bytes: int = 0
    """The request line, headers and body. By a proxy, and if the request was the first on its
    connection, both numbers have also what was said to the proxy before."""
    received_bytes: int = 0
    """All that came before the response was complete: status lines, headers, chunk sizes, the body
    as it was sent, still compressed. What TLS and TCP add is in neither number."""
    connect_s: float = 0.0
    """Until there was a connection, its name looked up: next to nothing where one was kept."""
    first_byte_s: float = 0.0
    """From sending the request to the first byte of the response."""


class Response(msgspec.Struct):
    """What a server answered, whatever its status."""

    url: str
    """The task's address: a redirect is a response of its own and is never followed here."""
    status: int
    headers: Mapping[str, str]
    """By name in any case. Bytes that are not UTF-8 are kept as surrogate escapes. Of a header that
    came several times, the first: see `set_cookies`."""
    body: bytes
    """Complete and decompressed."""
    duration_s: float
    """From the call of `fetch` to the end of the body."""
    transfer: Transfer = Transfer()

    @property
    def set_cookies(self) -> Sequence[str]:
        """All Set-Cookie lines, in their order."""
        return lines_in(self.headers)

    @property
    def wire_bytes(self) -> int:
        """What it took of the network, both ways, without TLS and TCP."""
        return self.transfer.sent_bytes + self.transfer.received_bytes


class Fetcher(ABC):
    """Sends one request per call: every one had its own permission, so none is repeated."""

    user_agent: str = ""
    """What it says it is, where a request does not say otherwise."""

    @abstractmethod
    async def fetch(self, request: Request) -> Response:
        """Get the page of the request's task. Raises FetchError, or one of its kinds: Refused,
        TooLarge; TooLate if nothing could be sent in time, OwnFault if nothing could be at all,
        ExitFault if an exit did not get it to the host.

        The message is one line for people, `retryable` says whether trying again may help, and
        `wire_bytes` what went over the network in vain.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close all connections. Calls to `fetch` must have ended or been cancelled."""
