"""Delivers alerts to a command: runs a program, without a shell, with JSON on its stdin."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import Process
from contextlib import suppress
from tempfile import TemporaryFile
from typing import IO

import msgspec

from shoal.alerts.messages import Notice, json_of
from shoal.alerts.routes import Command, Undelivered
from shoal.core.policy import parse_duration

STDERR = 2


async def run_command(route: Command, notice: Notice) -> None:
    """Run the command to its end. What it prints goes to stderr, like the logs. Raises OSError,
    TimeoutError, and Undelivered if its exit code is not 0."""
    with TemporaryFile() as given:  # Not a pipe, which would block if the command does not read it.
        given.write(msgspec.json.encode(json_of(notice)) + b"\n")  # For programs that read lines.
        given.seek(0)
        coming = asyncio.create_task(_started(route, given))
        try:
            process = await asyncio.shield(coming)
        except asyncio.CancelledError:
            await _end(await coming)  # The process may be running by now, with children.
            raise
    try:
        async with asyncio.timeout(parse_duration(route.timeout)):
            code = await process.wait()
    finally:
        await _end(process)
    if code != 0:
        raise Undelivered(f"{route.command[0]}: exit code {code}")


async def _started(route: Command, given: IO[bytes]) -> Process:
    return await asyncio.create_subprocess_exec(
        *route.command,
        stdin=given,
        stdout=STDERR,
        stderr=STDERR,
        start_new_session=True,  # So that its children can be killed with it.
    )


async def _end(process: Process) -> None:
    """Kill the process and all children that it left behind."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
