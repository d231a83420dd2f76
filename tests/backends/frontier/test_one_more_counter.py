"""A counter that a later version declares, with one line: it is summed up, in old crawls too."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import shoal
from shoal.frontier import frontier_at
from support.frontiers import CRAWL, Client, pages
from support.rarely import first_then_rare

TESTS = Path(__file__).parents[2]
FIRST = "    filtered: int = 0\n"
ODDITIES = "    oddities: int = 0\n"

Later = Callable[..., dict[str, Any]]


@pytest.fixture(params=["sqlite", *first_then_rare("redis", "cluster")])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/frontier.db"
    return str(request.getfixturevalue(f"redis_{request.param.replace('redis', 'server')}").url)


@pytest.fixture
async def client(address: str) -> AsyncIterator[Client]:
    """One of this version."""
    async with frontier_at(address) as frontier:
        yield Client(frontier, "this", CRAWL)


@pytest.fixture(scope="module")
def later_version(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shoal with one more counter. It is declared before the others: their order says nothing."""
    folder = tmp_path_factory.mktemp("later")
    shutil.copytree(Path(shoal.__file__).parent, folder / "shoal")
    declared = folder / "shoal/core/counters.py"
    text = declared.read_text("utf-8")
    assert text.count(FIRST) == 1
    declared.write_text(text.replace(FIRST, ODDITIES + FIRST), "utf-8")
    return folder


@pytest.fixture
def later(address: str, later_version: Path) -> Later:
    """Finishes a task with the later version. Returns its statistics."""

    def work(*counts: str) -> dict[str, Any]:
        command = [sys.executable, "-m", "support.one_page", address, *counts]
        environ = os.environ | {"PYTHONPATH": f"{later_version}{os.pathsep}{TESTS}"}
        done = subprocess.run(command, capture_output=True, text=True, env=environ, check=False)
        assert done.returncode == 0, done.stderr
        stats: dict[str, Any] = json.loads(done.stdout)
        return stats

    return work


async def test_is_counted_in_a_crawl_that_was_there_before(client: Client, later: Later) -> None:
    await client.start(*pages(4))
    await client.end(await client.lease_one(), items=2, body_bytes=100)
    assert later("oddities=7")["oddities"] == 7
    assert later()["oddities"] == 7
    stats = later("oddities=3", "items=1")
    assert [stats[name] for name in ("oddities", "items", "body_bytes")] == [10, 3, 100]
    assert stats["done"] == stats["sent"] == 4


async def test_stays_while_the_earlier_version_works_on(client: Client, later: Later) -> None:
    """The workers of a fleet are not replaced at one moment."""
    await client.start(*pages(4))
    later("oddities=7")
    await client.end(await client.lease_one(), items=1)
    await client.end(await client.lease_one(), items=1)
    stats = later()
    assert [stats[name] for name in ("oddities", "items", "done")] == [7, 2, 4]


async def test_a_file_of_an_earlier_version_gets_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "frontier.db"
    async with frontier_at(f"sqlite:///{path}") as frontier:
        await Client(frontier, "before", CRAWL).start(*pages(2))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE crawls DROP COLUMN unchanged")
    async with frontier_at(f"sqlite:///{path}") as frontier:
        client = Client(frontier, "now", CRAWL)
        await client.end(await client.lease_one(), unchanged=True)
        assert (await client.stats()).unchanged == 1
