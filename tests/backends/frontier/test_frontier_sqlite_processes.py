"""The SQLite frontier among real processes: at once, killed, on a full disk."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from shoal.frontier.sqlite.frontier import SqliteFrontier
from shoal.frontier.values import CrawlState, TaskState
from support.frontier_audit import sqlite_faults
from support.frontier_process import page, work
from support.frontiers import CRAWL, Client, open_rules
from support.processes import TESTS
from support.until import LIMIT_S

Process = subprocess.Popen[str]
ENDLESS = 10**12


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "frontier.db"


@contextmanager
def process(*arguments: str | Path) -> Iterator[Process]:
    """A process of `support.frontier_process`, gone at the end whatever happens."""
    command = [sys.executable, "-m", "support.frontier_process", *map(str, arguments)]
    environ = os.environ | {"PYTHONPATH": str(TESTS)}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environ) as child:
        try:
            yield child
        finally:
            child.kill()


def let_go(child: Process) -> None:
    """Wait until the process is ready, and let it begin."""
    assert child.stdout is not None
    assert child.stdin is not None
    assert child.stdout.readline() == "ready\n"
    child.stdin.write("\n")
    child.stdin.flush()


def lines(child: Process) -> list[str]:
    """All that the process prints until its end, which must be a good one."""
    assert child.stdout is not None
    printed = child.stdout.readlines()
    assert child.wait(LIMIT_S) == 0
    return printed


async def test_several_processes_do_each_task_once(path: Path) -> None:
    total = 1000
    frontier = SqliteFrontier(path)
    await frontier.start(CRAWL, open_rules())
    with ExitStack() as stack:
        fleet = [
            stack.enter_context(process("work", path, f"worker-{n}", str(total))) for n in range(4)
        ]
        for child in fleet:
            let_go(child)
        printed = [line for child in fleet for line in lines(child)]
    done = Counter(int(number) for line in printed for number in line.split())
    assert done == Counter(range(total))
    stats = await frontier.stats(CRAWL)
    await frontier.close()
    assert (stats.state, stats.done, stats.lost) == (CrawlState.FINISHED, total, 0)
    assert sqlite_faults(path) == []


async def test_killed_processes_leave_a_consistent_file(path: Path) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    moments = random.Random(seed)
    printed: list[str] = []
    for turn in range(6):
        with process("work", path, f"worker-{turn}", str(ENDLESS)) as child:
            let_go(child)
            assert child.stdout is not None
            printed += [child.stdout.readline() for _ in range(moments.randrange(1, 30))]
            child.kill()
            printed += child.stdout.readlines()
        assert sqlite_faults(path) == []
    client = Client(SqliteFrontier(path), "last", CRAWL)
    for number in {int(number) for line in printed for number in line.split()}:
        assert await client.state(page(number)) is TaskState.DONE
        assert await client.record(page(2 * number + 1))
        assert await client.record(page(2 * number + 2))
    for worker in await client.frontier.holders(CRAWL):
        await client.frontier.release(CRAWL, worker)
    await work(client, pages=0, report=False)
    stats = await client.stats()
    assert (stats.state, stats.done) == (CrawlState.FINISHED, stats.added)
    await client.frontier.close()
    assert sqlite_faults(path) == []


async def test_a_full_disk_takes_nothing_it_cannot_keep(path: Path) -> None:
    with process("fill", path, str(400_000)) as child:
        (line,) = lines(child)
    taken, error, message = line.split(maxsplit=2)
    assert (error, int(taken) > 0) == ("StorageFailed", True)
    assert "frontier.db" in message
    frontier = SqliteFrontier(path)
    client = Client(frontier, "worker", CRAWL)
    assert (await client.stats()).added == int(taken)
    assert (await client.add(page(10**6))).added == 1
    await frontier.close()
    assert sqlite_faults(path) == []
