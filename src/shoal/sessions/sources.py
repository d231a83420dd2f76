"""Reads accounts from files, environment variables and programs. Time and size are bounded, and
errors never show what was read."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
from asyncio import StreamReader
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import cast

from shoal.errors import ConfigError
from shoal.sessions.accounts import Accounts, is_json, read_accounts

MAX_BYTES = 16 * 1024 * 1024
"""Enough for the maximum number of accounts in a group, with long passwords."""
COMMAND_TIMEOUT_S = 30.0
END_S = 5.0
"""How long to wait for a program that was killed."""


def shown(source: str) -> str:
    """A source in a form that is safe to show: the arguments of a program may contain a key."""
    kind, _, rest = source.partition(":")
    if kind != "command":
        return source
    program, _, arguments = rest.strip().partition(" ")
    return f"{kind}:{program}{' ...' if arguments else ''}"


async def read_source(source: str, environ: Mapping[str, str]) -> Accounts:
    """Read one source of the option `accounts`. Raises ConfigError in one line, without secrets."""
    kind, _, rest = source.partition(":")
    try:
        if kind == "file":
            return await asyncio.to_thread(_of_file, rest)
        if kind == "env":
            return await asyncio.to_thread(_of_variable, rest, environ)
        return _decoded(await _said(rest))
    except ConfigError as error:
        raise ConfigError(f"{shown(source)}: {error}") from None


def _of_file(path: str) -> Accounts:
    return _decoded(read_bytes(path, MAX_BYTES + 1))


def read_bytes(path: str, most: int) -> bytes:
    """The first bytes of a file. Raises ConfigError in one line."""
    try:
        with Path(path).expanduser().open("rb") as file:
            return file.read(most)
    except OSError as error:
        raise ConfigError(error.strerror or "cannot be read") from None
    except (ValueError, RuntimeError):  # An invalid path, or `~user` for an unknown user.
        raise ConfigError("not a path") from None


def _of_variable(name: str, environ: Mapping[str, str]) -> Accounts:
    """Read a variable: it contains accounts, or the path of a file, such as a mounted secret. CSV
    has at least two lines."""
    value = environ.get(name, "").strip()
    if not value:
        raise ConfigError("the variable is not set")
    if "\n" not in value and not is_json(value):
        return _of_file(value)
    return read_accounts(value)


def _decoded(data: bytes) -> Accounts:
    if len(data) > MAX_BYTES:
        raise ConfigError(f"larger than {MAX_BYTES // 1024**2} MiB")
    try:
        return read_accounts(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ConfigError("not UTF-8") from None


async def _said(command_line: str) -> bytes:
    """Run a program, without a shell, and return what it writes to stdout. Raises ConfigError.

    Its stderr is not shown, as it may contain secrets.
    """
    try:
        words = shlex.split(command_line)
    except ValueError:
        raise ConfigError("not a command line") from None
    if not words:
        raise ConfigError("no program is named")
    try:
        process = await asyncio.create_subprocess_exec(
            *words, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, start_new_session=True
        )
    except OSError as error:
        raise ConfigError(error.strerror or "cannot be run") from None
    stdout = cast(StreamReader, process.stdout)  # Not None, as it was opened as a pipe.
    try:
        async with asyncio.timeout(COMMAND_TIMEOUT_S):
            return await _output(process, stdout)
    except TimeoutError:
        raise ConfigError(f"no answer within {COMMAND_TIMEOUT_S:g} s") from None
    finally:
        await _end(process, stdout)


async def _output(process: Process, stdout: StreamReader) -> bytes:
    data = bytearray()
    while len(data) <= MAX_BYTES and (part := await stdout.read(65_536)):
        data += part
    if len(data) > MAX_BYTES:
        return bytes(data)  # Too much: `_decoded` raises the error.
    code = await process.wait()
    if code:
        raise ConfigError(f"ended with exit code {code}: run it by hand to see why")
    return bytes(data)


async def _end(process: Process, stdout: StreamReader) -> None:
    """Kill a program that has not ended by itself, with its process group."""
    if process.returncode is None or not stdout.at_eof():
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    with suppress(TimeoutError):  # A process that left the group may still have the pipe open.
        async with asyncio.timeout(END_S):
            while await stdout.read(65_536):
                pass  # Unread output would hide the end of the pipe.
            await process.wait()
