"""Runs Shoal commands in the test's own process, ten times as fast as starting a process."""

from __future__ import annotations

import asyncio
import io
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

import pytest

from shoal.cli import main

QUICK = (
    *("seed", "status", "advise", "explain", "dead", "pause", "resume", "cancel", "export"),
    *("diff", "merge", "results", "schedule", "scrapy", "proxies", "alerts"),
)
"""Commands that start no processes and load no user code."""


def is_quick(args: Sequence[str | Path]) -> bool:
    """Whether a command can be run in this process: a quick one, and not within a running event
    loop, because it makes one of its own."""
    return bool(args) and args[0] in QUICK and asyncio._get_running_loop() is None


def call(
    args: Sequence[str | Path], folder: Path, env: Mapping[str, str], stdin: bytes = b""
) -> tuple[int, str, str]:
    """Run `shoal` in a folder, with only this environment. Returns its exit code, stdout and
    stderr."""
    out, err, given = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(3))
    given.buffer.write(stdin)
    given.seek(0)
    with (
        chdir(folder),
        patch.object(sys, "argv", ["shoal", *map(str, args)]),
        patch.object(sys, "stdin", given),
        patch.dict(os.environ, env, clear=True),
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    return int(ended.value.code or 0), _written(out), _written(err)


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    written = stream.buffer
    assert isinstance(written, io.BytesIO)
    return written.getvalue().decode()
