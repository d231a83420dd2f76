"""How a parent tells a child process what to do, and how the child answers.

The order is one line of JSON on the child's stdin. (An address may hold a password, so nothing goes
through the command line, where `ps` would show it.) Stdin stays open after that: when it ends, the
parent is gone. Stdout is for the child's last words alone: its answer, or why it failed. All else
that it prints goes to stderr. A Ctrl-C is the parent's to handle.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple, TextIO, TypeVar

import msgspec

from shoal.errors import ConfigError, ShoalError

GAVE_UP = 69
"""The exit code of a child for which starting another one would not help."""
MISCONFIGURED = 78
"""The same, where people have set up something wrong."""
FAILED = 1

T = TypeVar("T")

_START = """
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
from {module} import main
raise SystemExit(main())
"""
"""A Ctrl-C reaches the whole process group, also children that are still importing."""


class TryAgain(ShoalError):
    """Raised in a child: it failed, but another one may not."""


class Ended(NamedTuple):
    """How a child ended."""

    code: int
    last_words: str

    @property
    def gave_up(self) -> bool:
        """Whether starting another one would not help."""
        return self.code in (GAVE_UP, MISCONFIGURED)

    @property
    def is_misconfigured(self) -> bool:
        """Whether people have set up something wrong."""
        return self.code == MISCONFIGURED

    @property
    def how(self) -> str:
        """The exit code or the signal, for people."""
        if self.code < 0:
            return f"signal {signal.Signals(-self.code).name}"
        return f"exit code {self.code}"


class Child:
    """A process that was started, and waits for its order."""

    def __init__(self, process: Process, on_stderr: Callable[[str], object] | None) -> None:
        self._process = process
        self._on_stderr = on_stderr
        self.pid = process.pid

    def tell(self, order: msgspec.Struct) -> None:
        """Give it its order."""
        assert self._process.stdin is not None  # noqa: S101 - we asked for a pipe
        # It may be dead already; uvloop then raises a RuntimeError.
        with suppress(ProcessLookupError, RuntimeError, ConnectionError):
            self._process.stdin.write(msgspec.json.encode(order) + b"\n")

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError, RuntimeError):
                self._process.send_signal(number)

    async def ended(self) -> Ended:
        """Wait for its end."""
        assert self._process.stdout is not None  # noqa: S101 - we asked for a pipe
        said, _ = await asyncio.gather(self._process.stdout.read(), self._pass_on_stderr())
        return Ended(await self._process.wait(), said.decode("utf-8", "replace"))

    async def _pass_on_stderr(self) -> None:
        if self._process.stderr is None or self._on_stderr is None:
            return
        while text := await self._process.stderr.read(65536):
            self._on_stderr(text.decode("utf-8", "replace"))

    async def kill(self) -> None:
        """End it at once, unless it has ended."""
        if self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


@asynccontextmanager
async def child_process(
    module: str, on_stderr: Callable[[str], object] | None = None
) -> AsyncIterator[Child]:
    """Start a process that runs a module's `main`. It does not outlive the context. What it prints
    goes to `on_stderr`, or where our own stderr goes."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        _START.format(module=module),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE if on_stderr is not None else None,
    )
    child = Child(process, on_stderr)
    try:
        yield child
    finally:
        await child.kill()


def obey(form: type[T], work: Callable[[T], str]) -> int:
    """The `main` of a child: read an order, do the work, say what came of it. What `work` returns,
    or the error of ours that it raises, are the last words. Returns the exit code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=form)
    last_words = _take_stdout()
    try:
        words, code = work(order), 0
    except TryAgain as error:
        words, code = str(error), FAILED
    except ConfigError as error:
        words, code = str(error), MISCONFIGURED
    except ShoalError as error:
        words, code = str(error), GAVE_UP
    with suppress(OSError), last_words:  # The parent may be gone.
        last_words.write(words)
    return code


def _take_stdout() -> TextIO:
    """The pipe to the parent. What anybody prints from now on is not for it."""
    own = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace")
    os.dup2(2, 1)
    return own


def when_parent_is_gone(act: Callable[[], object]) -> Callable[[], object]:
    """In a child, with an event loop running: call `act` once the parent is gone. Returns what
    calls that off."""
    loop, stdin = asyncio.get_running_loop(), sys.stdin.fileno()

    def gone() -> None:
        loop.remove_reader(stdin)  # The end of a file is readable for ever.
        act()

    loop.add_reader(stdin, gone)
    return lambda: loop.remove_reader(stdin)


def end_with_parent() -> None:
    """In a child: end as soon as the parent is gone, whatever is being done. A thread sees to it,
    because the user's code may stand still for ever in the main one."""

    def wait() -> None:
        os.read(sys.stdin.fileno(), 1)
        os._exit(FAILED)

    threading.Thread(target=wait, daemon=True).start()
