"""Orders to child processes: what comes back, and how an end is told."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import msgspec
import pytest

from shoal.runtime.orders import Ended, child_process
from support.processes import is_alive

CHILD = """
import os, sys, time
import msgspec
from shoal.errors import ConfigError, StorageFailed
from shoal.runtime.orders import TryAgain, obey

class Do(msgspec.Struct):
    what: str

def work(order):
    print("printed")
    match order.what:
        case "answer":
            return "done"
        case "give up":
            raise StorageFailed("the disk is full")
        case "refuse":
            raise ConfigError("no such spider")
        case "fail":
            raise TryAgain("the store is away")
        case "exit":
            sys.exit(5)
        case "die":
            os.kill(os.getpid(), 9)
        case "hang":
            time.sleep(1000)

def main():
    return obey(Do, work)
"""


class Do(msgspec.Struct):
    what: str


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "a_child.py").write_text(CHILD)
    with chdir(tmp_path):
        yield tmp_path


@pytest.mark.parametrize(
    ("what", "ended", "how"),
    [
        ("answer", Ended(0, "done"), "exit code 0"),
        ("give up", Ended(69, "the disk is full"), "exit code 69"),
        ("refuse", Ended(78, "no such spider"), "exit code 78"),
        ("fail", Ended(1, "the store is away"), "exit code 1"),
        ("exit", Ended(5, ""), "exit code 5"),
        ("die", Ended(-9, ""), "signal SIGKILL"),
    ],
)
async def test_how_a_child_ends(what: str, ended: Ended, how: str) -> None:
    printed: list[str] = []
    async with child_process("a_child", printed.append) as child:
        child.tell(Do(what))
        found = await child.ended()
    assert (found, found.how) == (ended, how)
    assert found.gave_up == (what in ("give up", "refuse"))
    assert found.is_misconfigured == (what == "refuse")
    if what != "die":  # Then it is still in the buffer of what it prints.
        assert "".join(printed) == "printed\n", "not among its last words"


async def test_a_child_does_not_outlive_its_context() -> None:
    async with child_process("a_child") as child:
        child.tell(Do("hang"))
        assert is_alive(child.pid)
    assert not is_alive(child.pid)


async def test_a_dead_child_can_be_told_and_signalled() -> None:
    async with child_process("a_child") as child:
        os.kill(child.pid, signal.SIGKILL)
        ended = await child.ended()
        child.tell(Do("answer"))
        child.send_signal(signal.SIGTERM)
    assert ended.how == "signal SIGKILL"
