"""Which fetcher a request goes to, and by which route."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

import shoal
from shoal.config import Settings
from shoal.core.task import Task
from shoal.errors import Refused
from shoal.fetch import Fetchers, open_fetcher
from shoal.fetch.http.connection import Connection
from shoal.fetch.http.pool import ConnectionPool
from shoal.fetch.http.ways import Origin
from shoal.fetch.port import DIRECT, Fetcher, Request, Response, Route
from support.wire import Wire

URL = "http://127.0.0.1:9/"
ORIGIN = Origin(False, "127.0.0.1", 9)
ELSEWHERE = Route("elsewhere")


class Named(Fetcher):
    """Says its name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_closed = False

    async def fetch(self, request: Request) -> Response:
        return Response(request.task.url, 200, {}, self.name.encode(), 0.1)

    async def close(self) -> None:
        self.is_closed = True


class Opened:
    """Fetchers for tasks by their handler, and those that were opened."""

    def __init__(self) -> None:
        self.usual = Named("usual")
        self.others: list[Named] = []
        openers = {"one": lambda: self.open("one"), "two": lambda: self.open("two")}
        kinds = {"browse": "one", "listen": "two"}
        self.fetchers = Fetchers(self.usual, openers, lambda task: kinds.get(task.job_type))

    def open(self, name: str) -> Fetcher:
        self.others.append(Named(name))
        return self.others[-1]

    async def asked(self, job_type: str) -> str:
        response = await self.fetchers.fetch(Request(Task(url=URL, job_type=job_type)))
        return response.body.decode()


async def test_each_task_has_its_fetcher_which_is_opened_once() -> None:
    opened = Opened()
    assert await opened.asked("parse") == "usual"
    assert opened.others == []
    assert [await opened.asked(kind) for kind in ("browse", "listen", "browse")] == [
        "one",
        "two",
        "one",
    ]
    assert [other.name for other in opened.others] == ["one", "two"]


async def test_all_that_were_opened_are_closed() -> None:
    opened = Opened()
    await opened.asked("browse")
    await opened.fetchers.close()
    assert [fetcher.is_closed for fetcher in (opened.usual, *opened.others)] == [True, True]


def test_nobody_else_makes_one() -> None:
    sources = Path(shoal.__file__).parent
    users = {
        path.relative_to(sources).parts[0]
        for path in sources.rglob("*.py")
        if re.search(r"\bHttpFetcher\b", path.read_text("utf-8"))
    }
    assert users == {"fetch"}


async def test_connections_are_shared_only_on_one_route() -> None:
    pool = ConnectionPool(1000, is_guarded=False, limit_s=10.0)
    connection = Connection(1000)
    connection.connection_made(Wire())
    connection.is_quiet = lambda: True  # type: ignore[method-assign]
    pool.give_back((DIRECT, ORIGIN), connection)
    assert pool.take((ELSEWHERE, ORIGIN)) is None
    assert pool.take((DIRECT, ORIGIN)) is connection
    await pool.close()


async def test_a_route_that_is_not_known_is_not_replaced_by_another() -> None:
    asked = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.read())
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    task = Task(url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
    fetcher = open_fetcher(Settings(allow_private=True))
    with pytest.raises(Refused, match=r"^no such route: elsewhere$"):
        await fetcher.fetch(Request(task, route=ELSEWHERE))
    await fetcher.close()
    server.close()
    await server.wait_closed()
    assert asked == []
