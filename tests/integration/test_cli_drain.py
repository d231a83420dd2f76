"""`shoal drain` as its users run it."""

from __future__ import annotations

import asyncio
import re
import shlex
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from contract.results_suite import CRAWL, some_item, some_page, some_rejected
from shoal.results.port import Batch
from shoal.results.stream import RedisStreamResults
from support.processes import SHOAL, Ended, Folder, catches
from support.redis_servers import RedisServer
from support.server_process import free_port
from support.streams import KEY, stream_url, waiting
from support.until import until_now

TO = ("--to", "sqlite:///drained.db")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with RedisServer(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path, server: RedisServer) -> Folder:
    """With three batches in the stream."""
    server.client().flushall()
    asyncio.run(save(stream_url(server), 3))
    return Folder(tmp_path, {"SHOAL_RESULTS": stream_url(server)})


async def save(address: str, count: int) -> None:
    results = RedisStreamResults(address)
    for number in range(count):
        items = [some_item(f"{number}-{n}") for n in range(10)]
        page, bad = some_page(attempt=number), some_rejected(data=f"{number}")
        await results.save(CRAWL, Batch([page], items, [bad]))
    await results.close()


def stored(folder: Folder) -> int:
    """The items in the store."""
    with closing(sqlite3.connect(folder.path / "drained.db")) as connection:
        (count,) = connection.execute("SELECT count(*) FROM items").fetchone()
    return int(count)


def assert_one_line(ended: Ended, says: str) -> None:
    assert ended.code == 2, ended
    assert re.fullmatch(r"shoal: .+\n", ended.err), ended.err
    assert says in ended.err


def test_until_empty(folder: Folder) -> None:
    ended = folder.shoal("drain", *TO, "--until-empty")
    assert ended.code == 0, ended
    assert ended.out == "3 pages and 30 items are in sqlite:///drained.db; 0 batches wait\n"
    assert ended.err == ""
    assert stored(folder) == 30


def test_json(folder: Folder, server: RedisServer) -> None:
    server.client().xadd(KEY, {"hello": "world"})
    summary = folder.shoal("drain", *TO, "--until-empty", "--json").json()
    assert summary.pop("seconds") >= 0
    assert summary == {
        "batches": 3,
        "pages": 3,
        "items": 30,
        "rejected": 3,
        "garbage": 1,
        "waiting": 0,
    }


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it(folder: Folder, server: RedisServer, number: int) -> None:
    with folder.running("drain", *TO) as deliverer, server.client() as raw:
        until_now("the stream to be empty", lambda: waiting(raw) == 0)
        asyncio.run(save(stream_url(server), 5))
        until_now("the stream to be empty again", lambda: waiting(raw) == 0)
        deliverer.send(number)
        ended = deliverer.wait()
    assert ended.code == 0, ended
    assert "stopping: finishing what is in hand" in ended.err
    assert "8 pages and 80 items are in" in ended.out


def test_a_signal_ends_it_while_redis_is_away(folder: Folder, tmp_path: Path) -> None:
    with RedisServer(tmp_path / "redis") as own:
        asyncio.run(save(stream_url(own), 1))
        with folder.running("drain", "--results", stream_url(own), *TO) as deliverer:
            with own.client() as raw:
                until_now("the stream to be empty", lambda: waiting(raw) == 0)
            own.kill()
            until_now("it to notice", lambda: "waiting for the result stream" in deliverer.err)
            assert catches(deliverer.pid, signal.SIGTERM)
            deliverer.send(signal.SIGTERM)
            ended = deliverer.wait()
    assert ended.code == 0, ended
    assert "stopped while waiting" in ended.err


def test_a_line_on_a_terminal(folder: Folder) -> None:
    command = shlex.join(["env", "TERM=xterm", str(SHOAL), "drain", *TO, "--until-empty"])
    with folder.running("-qec", command, "/dev/null", program="script") as terminal:
        ended = terminal.wait()
    assert ended.code == 0, ended
    assert "0 batches wait · 3 pages and 30 items written · " in ended.out


class TestWrongUse:
    def test_no_stream(self, folder: Folder) -> None:
        address = "sqlite:///shoal.db"
        assert_one_line(folder.shoal("drain", "--results", address, *TO), "write redis-stream://")

    def test_a_server_that_is_not_there(self, folder: Folder) -> None:
        nowhere = f"redis-stream://127.0.0.1:{free_port()}"
        crawl = ("crawl", "http://127.0.0.1:9/", "--allow-private")
        for command in (("drain", *TO), crawl):
            ended = folder.shoal(*command, "--results", nowhere)
            assert_one_line(ended, "is the address right, and is it running?")
            assert "127.0.0.1" in ended.err

    def test_into_a_stream(self, folder: Folder, server: RedisServer) -> None:
        ended = folder.shoal("drain", "--to", stream_url(server))
        assert_one_line(ended, "a stream is not a store")

    def test_into_nothing(self, folder: Folder) -> None:
        assert_one_line(folder.shoal("drain"), "--to")
        assert_one_line(folder.shoal("drain", "--to", "mysql://host"), "no results store for")

    def test_into_a_folder_that_does_not_exist(self, folder: Folder) -> None:
        ended = folder.shoal("drain", "--to", "sqlite:///nowhere/shoal.db")
        assert_one_line(ended, "the folder does not exist")

    def test_a_password_that_is_not_wanted(self, folder: Folder, server: RedisServer) -> None:
        address = f"redis-stream://:s3cret@127.0.0.1:{server.port}"
        ended = folder.shoal("drain", "--results", address, *TO)
        assert_one_line(ended, "without any password")
        assert "s3cret" not in ended.err

    def test_questions_to_the_stream(self, folder: Folder) -> None:
        ended = folder.shoal("export", CRAWL)
        assert_one_line(ended, "the store that `shoal drain` fills")

    def test_starting_over(self, folder: Folder) -> None:
        ended = folder.shoal("crawl", "http://127.0.0.1:9/", "--fresh", "--allow-private")
        assert_one_line(ended, "cannot be forgotten")
