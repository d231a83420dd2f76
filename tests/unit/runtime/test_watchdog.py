"""A process that stands still is ended, and one that is not ours says where it stands."""

from __future__ import annotations

import asyncio
import io
import subprocess
import sys
import threading

import pytest

from shoal.runtime.watchdog import watched
from support.until import LIMIT_S, until_now

STANDS_STILL = """
import asyncio, io, re, sys
from shoal.runtime.watchdog import watched

def stuck_here():
    {how}

async def main():
    with watched(0.5):
        await asyncio.sleep(0)
        stuck_here()

sys.stderr = {stderr}
asyncio.run(main())
"""
LOOPS = "while True: pass"
LETS_NO_THREAD_RUN = "re.match('(a*)*b', 'a' * 99)"


def stand_still(how: str, stderr: str = "sys.stderr") -> str:
    """What a process says that stands still in some way, and so ends."""
    ended = subprocess.run(
        [sys.executable, "-c", STANDS_STILL.format(how=how, stderr=stderr)],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    assert ended.returncode == 1
    return ended.stderr


def test_a_stalled_process_ends_and_says_where_it_stood() -> None:
    first, *stack = stand_still(LOOPS).splitlines()
    assert first == "shoal: this process has stood still for 1 s, so it ends:"
    assert "stuck_here" in stack[-1]


def test_also_where_no_other_thread_can_run() -> None:
    assert "stuck_here" in stand_still(LETS_NO_THREAD_RUN)


@pytest.mark.parametrize("stderr", ["io.StringIO()", "None"])
@pytest.mark.parametrize("how", [LOOPS, LETS_NO_THREAD_RUN])
def test_whatever_stderr_is(how: str, stderr: str) -> None:
    stand_still(how, stderr)


async def test_a_program_that_is_not_ours_says_where_it_stands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = io.StringIO()  # It has no descriptor.
    monkeypatch.setattr(sys, "stderr", said)
    with watched(0.01, ends=False):
        until_now("it to say so", said.getvalue)
        await asyncio.sleep(0)
    assert said.getvalue().startswith("shoal: this program has stood still for 0.02 s:\n")
    assert "until_now" in said.getvalue()


async def test_nor_is_it_bothered_where_there_is_no_stderr(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failures: list[object] = []
    monkeypatch.setattr(threading, "excepthook", failures.append)
    monkeypatch.setattr(sys, "stderr", None)
    before = set(threading.enumerate())
    with watched(0.01, ends=False):
        until_now("the end of who would say so", lambda: set(threading.enumerate()) <= before)
    assert not failures


@pytest.mark.parametrize("ends", [True, False])
async def test_a_watchdog_that_cannot_watch_harms_nobody(
    monkeypatch: pytest.MonkeyPatch, ends: bool
) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    with watched(0.01, ends=ends):
        await asyncio.sleep(0.05)


def test_shoal_needs_no_stderr() -> None:
    script = "import sys; sys.stderr = None; import shoal, shoal.fleet.crawl"
    subprocess.run([sys.executable, "-c", script], check=True)
