"""Connections that are kept, and those that our own machine cannot make."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import resource
import socket
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from math import inf
from typing import Any

import pytest
from aiohappyeyeballs import start_connection

from shoal.config import Rules
from shoal.core.policy import SEND_SLACK_S
from shoal.core.task import Task
from shoal.errors import FetchError, OwnFault, TooLate
from shoal.fetch.http import pool
from shoal.fetch.http.connection import Connection
from shoal.fetch.http.ways import Way
from shoal.fetch.port import Fetcher, Request
from shoal.frontier.admission import Admission
from shoal.frontier.values import Lease, Verdict
from shoal.runtime import patience
from shoal.spider.page import Page
from shoal.spider.spider import Spider
from shoal.worker.visits.visitor import Visitor
from support.dns_server import NameServer
from support.fetching import fetching, request
from support.hostile import HostileServer
from support.until import until
from support.visitors import page_visitor

HOSTS = [f"h{number}.example" for number in range(12)]


@pytest.fixture
async def server() -> AsyncIterator[HostileServer]:
    async with HostileServer() as server:
        yield server


@pytest.fixture(autouse=True)
async def names(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[NameServer]:
    async with NameServer({host: ["127.0.0.1"] for host in HOSTS}) as names:
        names.is_used_by(monkeypatch)
        yield names


async def fetch(fetcher: Fetcher, server: HostileServer, host: str) -> None:
    response = await fetcher.fetch(request(f"http://{host}:{server.port}/ok"))
    assert response.status == 200


# Idle ones


def limits(files: int) -> Any:
    return lambda kind: (files, files)


@pytest.mark.parametrize(("most", "files"), [(5, 1000), (500, 20), (5, -1)])
async def test_idle_connections_have_a_limit_and_the_oldest_goes(
    server: HostileServer, monkeypatch: pytest.MonkeyPatch, most: int, files: int
) -> None:
    monkeypatch.setattr(pool, "MAX_IDLE", most)
    monkeypatch.setattr(resource, "getrlimit", limits(files))
    async with fetching() as fetcher:
        for host in HOSTS:
            await fetch(fetcher, server, host)
        await until("all but five to be closed", lambda: server.open_connections == 5)
        for host in HOSTS[-5:]:
            await fetch(fetcher, server, host)
        assert len(server.connections) == len(HOSTS)
        await fetch(fetcher, server, HOSTS[-6])
        assert len(server.connections) == len(HOSTS) + 1
        # Now the next one to go is that of the host that was visited longest ago.
        await fetch(fetcher, server, HOSTS[-4])
        assert len(server.connections) == len(HOSTS) + 1
        await fetch(fetcher, server, HOSTS[-5])
        assert len(server.connections) == len(HOSTS) + 2


async def test_what_was_idle_for_long_is_closed(
    server: HostileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "IDLE_S", 0.01)
    async with fetching() as fetcher:
        await asyncio.gather(*(fetch(fetcher, server, host) for host in HOSTS))
        await until("all to be closed", lambda: server.open_connections == 0)


@pytest.mark.parametrize("unasked", [b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged", b""])
async def test_what_came_before_a_request_is_no_answer_to_it(unasked: bytes) -> None:
    """The event loop has not seen it yet, but it is there. Nor is a request wasted on a connection
    that the server has just closed."""
    served: list[socket.socket] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.append(writer.get_extra_info("socket"))
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n%d" % len(served))
        with suppress(OSError):
            await reader.read()
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    task = Task(url=f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/")
    async with fetching() as fetcher:
        assert (await fetcher.fetch(Request(task))).body == b"1"
        # Behind the back of the event loop, so that it has no turn before the next request.
        with socket.socket(fileno=os.dup(served[0].fileno())) as server:
            server.send(unasked) if unasked else server.shutdown(socket.SHUT_WR)
        assert (await fetcher.fetch(Request(task))).body == b"2"
    listening.close()
    await listening.wait_closed()


# What our own machine cannot do


class Shortage:
    """So many connections cannot be made, for a reason of our own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, code: int, times: int) -> None:
        self.left = times
        self._code = code
        self._real = start_connection
        monkeypatch.setattr(pool, "start_connection", self._connect)

    async def _connect(self, *arguments: Any, **options: Any) -> socket.socket:
        if self.left:
            self.left -= 1
            raise OSError(self._code, "as the system says")
        return await self._real(*arguments, **options)


class Quiet(Spider):
    def parse(self, page: Page) -> None:
        return None


def visitor(fetcher: Fetcher, **rules: Any) -> Visitor:
    return page_visitor(Quiet(), fetcher, Rules(rate="none", **rules))


def lease(server: HostileServer, **changes: Any) -> Lease:
    entry = Admission(Rules()).admit(Task(url=f"http://{HOSTS[0]}:{server.port}/ok"))
    return Lease(entry.fingerprint, "token", entry.task, **changes)


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.EADDRNOTAVAIL])
@pytest.mark.parametrize("robots", [True, False])
async def test_the_host_is_not_blamed_and_no_try_is_used_up(
    server: HostileServer, monkeypatch: pytest.MonkeyPatch, code: int, robots: bool
) -> None:
    monkeypatch.setattr(patience, "OWN_FAULT_PAUSE_S", 0.0)
    Shortage(monkeypatch, code, times=1)
    async with fetching() as fetcher:
        report = await visitor(fetcher, robots=robots).visit(lease(server), inf)
        outcome = report.outcome
        assert (outcome.verdict, outcome.sent) == (Verdict.RETURNED, False)
        assert not outcome.fault
        assert outcome.robots is None
        assert report.page is None
        again = await visitor(fetcher, robots=False).visit(lease(server), inf)
        assert again.outcome.verdict is Verdict.DONE


async def test_a_host_that_refuses_is_blamed_as_ever(
    server: HostileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    Shortage(monkeypatch, errno.ECONNREFUSED, times=1)
    async with fetching() as fetcher:
        report = await visitor(fetcher, robots=False).visit(lease(server), inf)
    assert (report.outcome.verdict, report.outcome.fault) == (Verdict.RETRY, True)


async def test_it_waits_before_it_says_so(
    server: HostileServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Else the same task would be leased again and again. And the log says it once in a while."""
    waits: list[float] = []

    async def sleep(wait_s: float) -> None:
        waits.append(wait_s)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    shortage = Shortage(monkeypatch, errno.EMFILE, times=20)
    monkeypatch.setattr(logging.getLogger("shoal"), "propagate", True)
    async with fetching() as fetcher:
        while shortage.left:
            with pytest.raises(OwnFault, match=r"^too many open files$"):
                await fetch(fetcher, server, HOSTS[0])
    assert [wait_s for wait_s in waits if wait_s] == [patience.OWN_FAULT_PAUSE_S] * 20
    assert [record.getMessage() for record in caplog.records] == [
        "no new connections, tasks wait: too many open files on this machine"
    ]


async def test_a_shortage_closes_what_is_idle(
    server: HostileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "OWN_FAULT_PAUSE_S", 0.0)
    async with fetching() as fetcher:
        for host in HOSTS[1:]:
            await fetch(fetcher, server, host)
        Shortage(monkeypatch, errno.EMFILE, times=1)
        with pytest.raises(OwnFault):
            await fetch(fetcher, server, HOSTS[0])
        await until("idle connections to be closed", lambda: server.open_connections == 0)


async def test_a_name_that_cannot_be_asked_for(
    names: NameServer, server: HostileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """c-ares says "could not contact DNS servers" if it gets no socket."""
    monkeypatch.setattr(patience, "OWN_FAULT_PAUSE_S", 0.0)
    names.address = "127.0.0.1:1"

    def no_socket(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    async with fetching() as fetcher:
        with pytest.raises(FetchError, match=r"^DNS: could not contact dns servers$") as caught:
            await fetch(fetcher, server, HOSTS[0])
        assert not isinstance(caught.value, OwnFault)
        monkeypatch.setattr(socket, "socket", no_socket)
        with pytest.raises(OwnFault, match=r"^too many open files$"):
            await fetch(fetcher, server, HOSTS[1])
        monkeypatch.undo()


# Those that take long to make


async def test_a_permission_may_lapse_while_a_connection_is_made(server: HostileServer) -> None:
    """Nothing is sent then, and the connection is there for the next try."""
    async with fetching() as fetcher:
        task = Task(url=f"http://{HOSTS[0]}:{server.port}/ok")
        with pytest.raises(TooLate):
            await fetcher.fetch(Request(task, send_by=time.monotonic()))
        assert (len(server.connections), server.requests) == (1, [])
        response = await fetcher.fetch(Request(task, send_by=time.monotonic()))
        assert response.status == 200
        assert len(server.connections) == 1


async def test_what_may_not_be_sent_any_more_is_given_back(
    server: HostileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host has a rate: sent late, the request would come too close to the next one."""
    connect = pool.ConnectionPool.connect

    async def connect_slowly(own: pool.ConnectionPool, way: Way) -> Connection:
        connection = await connect(own, way)
        await asyncio.sleep(1.1 * SEND_SLACK_S)
        return connection

    monkeypatch.setattr(pool.ConnectionPool, "connect", connect_slowly)
    async with fetching() as fetcher:
        visits = visitor(fetcher, robots=False)
        late = await visits.visit(lease(server), time.monotonic() + SEND_SLACK_S)
        assert (late.outcome.verdict, late.outcome.sent) == (Verdict.RETURNED, False)
        assert server.requests == []
        assert (await visits.visit(lease(server), inf)).outcome.sent
        assert len(server.connections) == len(server.requests) == 1
