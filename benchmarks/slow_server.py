"""Serves slow hosts: many ports in one process, which answer after a fixed delay.

They are bare asyncio protocols on uvloop, so that the server is never the bottleneck. They log when
each request came, when it was answered and its user agent. So site_log.py can tell whether a host
was hit too often, or by too many requests at once.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from multiprocessing.connection import Connection
from typing import cast

import msgspec
import uvloop

_BODY = b"<html><h1>A page</h1><p>%s</p></html>" % (b"It took a while. " * 60)
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s" % (
    len(_BODY),
    _BODY,
)

_user_agent = re.compile(rb"\r\nuser-agent: ([^\r]*)", re.IGNORECASE).search


class Hit(msgspec.Struct):
    """A request. Times are by the monotonic clock, which all processes of a machine share."""

    came: float
    agent: str
    """Its user agent."""
    answered: float = inf
    """Set even if the client has left: until then the host works on the request."""


Hits = dict[int, list[Hit]]
"""The requests to each port, in the order of arrival."""


class Seen(msgspec.Struct, frozen=True):
    """A crawl as its hosts saw it."""

    requests: int
    seconds: float
    """From the first request to the last answer."""
    busiest: int
    """The most requests that any host got within one second."""


class SlowHosts:
    """The running server, seen from the process that started it."""

    def __init__(self, pipe: Connection, delay_s: float) -> None:
        self._pipe = pipe
        self._delay_s = delay_s
        self.ports: list[int] = pipe.recv()

    def hits(self) -> Hits:
        """The requests since the last call."""
        self._pipe.send("tell")
        hits: Hits = self._pipe.recv()
        return hits

    def seen(self) -> Seen:
        """A summary of the requests since the last call."""
        moments = [[hit.came for hit in own] for own in self.hits().values()]
        times = sorted(at for own in moments for at in own)
        if not times:
            raise SystemExit("benchmarks: nobody asked for a page")
        busiest = max(_most_within(own, 1.0) for own in moments)
        return Seen(len(times), times[-1] - times[0] + self._delay_s, busiest)


def _most_within(times: list[float], window_s: float) -> int:
    most = first = 0
    for last, at in enumerate(times):
        while at - times[first] >= window_s:
            first += 1
        most = max(most, last - first + 1)
    return most


@contextmanager
def slow_hosts(count: int, delay_s: float) -> Iterator[SlowHosts]:
    """Run `count` hosts in a process of their own."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=_serve, args=(theirs, count, delay_s), daemon=True)
    process.start()
    try:
        yield SlowHosts(ours, delay_s)
    finally:
        process.terminate()
        process.join()


def _serve(pipe: Connection, count: int, delay_s: float) -> None:
    uvloop.run(_answer_all(pipe, count, delay_s))


async def _answer_all(pipe: Connection, count: int, delay_s: float) -> None:
    loop = asyncio.get_running_loop()
    hits: Hits = {}
    for _ in range(count):
        listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        own = hits[listener.getsockname()[1]] = []
        await loop.create_server(lambda own=own: _Host(own, delay_s), sock=listener)  # type: ignore[misc]

    def tell() -> None:
        pipe.recv()
        pipe.send(hits)
        for own in hits.values():
            own.clear()

    loop.add_reader(pipe.fileno(), tell)
    pipe.send(list(hits))
    await asyncio.Event().wait()


class _Host(asyncio.Protocol):
    """One connection to a host. Requests have no bodies and come one at a time."""

    def __init__(self, hits: list[Hit], delay_s: float) -> None:
        self._hits = hits
        self._delay_s = delay_s
        self._received = b""
        self._transport: asyncio.WriteTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._received.endswith(b"\r\n\r\n"):
            agent = _user_agent(self._received)
            hit = Hit(time.monotonic(), agent[1].decode() if agent else "")
            self._received = b""
            self._hits.append(hit)
            asyncio.get_running_loop().call_later(self._delay_s, self._answer, hit)

    def _answer(self, hit: Hit) -> None:
        hit.answered = time.monotonic()
        if not self._transport.is_closing():
            self._transport.write(ANSWER)
