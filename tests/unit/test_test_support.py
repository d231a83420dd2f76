"""What tests are built on: waits that end, and folders whose names do not matter."""

from __future__ import annotations

import ast
import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest

import shoal
from support.markdown import ROOT
from support.processes import TESTS
from support.scrapy_projects import assert_no_warning_of_ours
from support.server_process import program
from support.until import LIMIT_S, in_time, until, until_now

ALLOW_AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
WHERE_LOOPS_SLEEP = TESTS / "support" / "until.py"


def test_a_wait_says_what_it_waited_for() -> None:
    with pytest.raises(AssertionError, match="for a bus; last seen: 0"):
        until_now("a bus", lambda: 0, limit_s=0.0)
    assert until_now("a bus", lambda: 7) == 7


async def test_so_does_one_in_an_event_loop() -> None:
    async def hangs() -> None:
        await in_time("the end of time", asyncio.Event().wait())

    with pytest.raises(AssertionError, match="for a bus; last seen: False"):
        await until("a bus", lambda: False, limit_s=0.0)
    with pytest.raises(AssertionError, match="for an answer"):
        await until("an answer", hangs, limit_s=0.0)
    with pytest.raises(TimeoutError, match="its own"):
        await in_time("something that has a limit of its own", raises(TimeoutError("its own")))


async def raises(error: Exception) -> None:
    raise error


HANGS = """
import time

def stands_here():
    time.sleep(1000)

def test_it():
    stands_here()
"""


def test_what_hangs_all_the_same_is_ended_and_shows_where_it_stood(tmp_path: Path) -> None:
    """By pytest-timeout, as pyproject.toml has it; only the limit is another here."""
    file = tmp_path / "test_hangs.py"
    file.write_text(HANGS, "utf-8")
    options = ["-c", f"{ROOT}/pyproject.toml", "-o", "timeout=1", "-p", "no:cacheprovider"]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *options, file],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert ended.returncode == 1
    assert "Timeout" in ended.stdout
    assert ">       time.sleep(1000)" in ended.stdout


def endless_waits(tree: ast.AST) -> list[int]:
    """The lines of loops that sleep, and of waits for an event or a process, without a limit."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if (isinstance(node, ast.While) and sleeps(node))
        or (isinstance(node, ast.Await) and is_bare_wait(node))
    ]


def sleeps(loop: ast.While) -> bool:
    return any(
        isinstance(node, ast.Call) and ast.unparse(node.func).endswith("sleep")
        for statement in loop.body
        for node in ast.walk(statement)
    )


def is_bare_wait(awaiting: ast.Await) -> bool:
    return isinstance(awaiting.value, ast.Call) and ast.unparse(awaiting.value).endswith(".wait()")


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("while not done:\n    time.sleep(1)", [1]),
        ("while True:\n    if x:\n        await asyncio.sleep(0)", [1]),
        ("await event.wait()", [1]),
        ("while todo:\n    todo.pop()", []),
        ("await in_time('it', event.wait())", []),
    ],
)
def test_waits_without_a_limit_are_found(code: str, lines: list[int]) -> None:
    assert endless_waits(compile(code, "", "exec", ast.PyCF_ONLY_AST | ALLOW_AWAIT)) == lines


def test_no_test_waits_without_a_limit() -> None:
    files = [file for file in TESTS.rglob("*.py") if file != WHERE_LOOPS_SLEEP]
    found = {file.name: endless_waits(ast.parse(file.read_text("utf-8"))) for file in files}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_warnings_of_ours_are_told_by_the_package_and_not_by_the_name_of_a_folder() -> None:
    warning = "{}:12: ScrapyDeprecationWarning: it is old"
    for others in (ROOT / ".venv/lib/scrapy/http.py", "/home/ann/shoal/project/spiders.py"):
        assert_no_warning_of_ours(warning.format(others))
    with pytest.raises(AssertionError, match="it is old"):
        assert_no_warning_of_ours(warning.format(Path(shoal.__file__).parent / "scrapy/feed.py"))


MAY_SKIP = {
    TESTS / "support" / "server_process.py",  # What is not here; in CI, that fails.
    TESTS / "support" / "frontiers.py",  # What a frontier does not have.
}


def test_what_is_missing_here_skips_in_one_place() -> None:
    """Where it fails in CI."""
    calls = re.compile(r"pytest\.(?:importor)?skip\(")
    found = {path for path in TESTS.rglob("*.py") if calls.search(path.read_text("utf-8"))}
    assert found == MAY_SKIP


@pytest.mark.parametrize(
    ("programs", "says"),
    [
        ({}, "there is no apt-get here: please install what Debian calls "),
        ({"apt-get": "exit 1"}, "this is not root, and there is no sudo. As root, run: apt-get "),
    ],
)
def test_servers_that_cannot_be_installed_are_named_in_one_line(
    tmp_path: Path, programs: dict[str, str], says: str
) -> None:
    for name, does in ({"id": "echo 1000"} | programs).items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "dirname").symlink_to(program("dirname"))
    ended = subprocess.run(
        [program("bash"), ROOT / "scripts" / "servers"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    (line,) = ended.stderr.splitlines()
    assert line.startswith(says)
    assert " redis-server " in line
