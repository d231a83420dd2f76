"""The protocol between a parent and its child processes: an order, and the child's last words.

The order is one line of JSON on the child's stdin, not on the command line: an address may contain
a password, and `ps` would show it. Stdin then stays open; when it ends, the parent is gone. Stdout
is only for the child's last words: its answer, or why it failed. Everything else that it prints
goes to stderr. Only the parent handles a Ctrl-C.
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
"""The exit code of a child if starting another one would not help."""
MISCONFIGURED = 78
"""The exit code of a child if the user has to correct the setup; another one would not help."""
FAILED = 1

T = TypeVar("T")

_START = """
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
from {module} import main
raise SystemExit(main())
"""
"""The program of a child. It ignores SIGINT before importing anything, as a Ctrl-C reaches the
whole process group."""


class TryAgain(ShoalError):
    """Raised in a child that fails where another attempt may succeed."""


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
        """Whether the user has to correct the setup."""
        return self.code == MISCONFIGURED

    @property
    def how(self) -> str:
        """The exit code or the signal, as text for people."""
        if self.code < 0:
            return f"signal {signal.Signals(-self.code).name}"
        return f"exit code {self.code}"


class Child:
    """A child process that was started and waits for its order."""

    def __init__(self, process: Process, on_stderr: Callable[[str], object] | None) -> None:
        self._process = process
        self._on_stderr = on_stderr
        self.pid = process.pid

    def tell(self, order: msgspec.Struct) -> None:
        """Send the child its order. Not an error if it has ended."""
        assert self._process.stdin is not None  # noqa: S101 - it was opened as a pipe
        # If the child is dead already, uvloop raises a RuntimeError.
        with suppress(ProcessLookupError, RuntimeError, ConnectionError):
            self._process.stdin.write(msgspec.json.encode(order) + b"\n")

    def send_signal(self, number: int) -> None:
        """Send the child a signal, unless it has ended."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError, RuntimeError):
                self._process.send_signal(number)

    async def ended(self) -> Ended:
        """Wait until the child has ended."""
        assert self._process.stdout is not None  # noqa: S101 - it was opened as a pipe
        said, _ = await asyncio.gather(self._process.stdout.read(), self._pass_on_stderr())
        return Ended(await self._process.wait(), said.decode("utf-8", "replace"))

    async def _pass_on_stderr(self) -> None:
        if self._process.stderr is None or self._on_stderr is None:
            return
        while text := await self._process.stderr.read(65536):
            self._on_stderr(text.decode("utf-8", "replace"))

    async def kill(self) -> None:
        """Kill the child, unless it has ended."""
        if self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


@asynccontextmanager
async def child_process(
    module: str, on_stderr: Callable[[str], object] | None = None
) -> AsyncIterator[Child]:
    """Start a process that runs a module's `main`. It is killed at the end of the context.

    Its output goes to `on_stderr`, or to the parent's stderr.
    """
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
    """The `main` of a child: read the order, do the work, report the result.

    The last words are what `work` returns, or the text of the ShoalError that it raises. Returns
    the exit code.
    """
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
    """Return the pipe to the parent, and redirect everything printed from now on to stderr."""
    own = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace")
    os.dup2(2, 1)
    return own


def when_parent_is_gone(act: Callable[[], object]) -> Callable[[], object]:
    """In a child with a running event loop: call `act` once the parent is gone.

    Returns a function that cancels this.
    """
    loop, stdin = asyncio.get_running_loop(), sys.stdin.fileno()

    def gone() -> None:
        loop.remove_reader(stdin)  # At the end of the file, it would be called for ever.
        act()

    loop.add_reader(stdin, gone)
    return lambda: loop.remove_reader(stdin)


def end_with_parent() -> None:
    """In a child: end as soon as the parent is gone, whatever the child is doing.

    A thread waits for it, because the user's code may block the main thread for ever.
    """

    def wait() -> None:
        os.read(sys.stdin.fileno(), 1)
        os._exit(FAILED)

    threading.Thread(target=wait, daemon=True).start()
