"""Trials: odd pages are first parsed in a process that can be killed.

A parser parses a page in one call that nothing can interrupt. Some pages of a few kilobytes take
hours or gigabytes. `markup.py` decides which pages are odd.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shoal.errors import OwnFault, Starved, Unparsable
from shoal.spider import trial_process
from shoal.spider.trial_process import FINE, HEADER, NOT_THERE, TOO_LARGE

SECONDS, SECONDS_PER_BYTE = 0.5, 0.1 / 1024 / 1024
"""Processor time for a page, plus for each byte of it. A sane page takes a tenth of that."""

TREE_BYTES, TREE_BYTES_PER_BYTE = 256 * 1024 * 1024, 16
"""Memory for the tree of a page, plus for each byte of it."""

PATIENCE = 60
"""How many times longer it may take by the clock: other processes need the processor too. On a busy
machine there are dozens."""

TRIES = 2
"""How often to try a page: a process may also end for other reasons."""

CRASHES = (-signal.SIGSEGV, -signal.SIGBUS, -signal.SIGABRT, -signal.SIGILL, -signal.SIGFPE)
"""Exit codes of a parser that crashes on a page. Any other end has other causes."""

_COMMAND = (sys.executable, "-P", str(Path(trial_process.__file__)))


class Trial:
    """The process in which odd pages are parsed first. It is started when needed, and again after a
    page has ended it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def check(self, page: bytes, selector: str = NOT_THERE, seconds: float | None = None) -> None:
        """Return if a page can be parsed, and a selector run on it, with reasonable effort. Else
        raise Unparsable, or OwnFault if our own machine could not try it. `seconds` is processor
        time, and larger pages get more; the default is that for parsing."""
        seconds = SECONDS if seconds is None else seconds
        with self._lock:
            for _ in range(TRIES):
                answer = self._ask(page, selector.encode(), seconds)
                if answer == FINE:
                    return
                code = self.close()
                if answer == TOO_LARGE:
                    raise Unparsable("the page takes too much memory to parse")
                if code == -signal.SIGPROF:
                    raise Unparsable("the page takes too long to parse")
        if code in CRASHES:
            raise Unparsable(f"the page ends the process that parses it (exit code {code})")
        raise Starved(f"the process that tries pages was ended (exit code {code})")

    def close(self) -> int | None:
        """End the process. Returns its exit code, if there was one."""
        process, self._process = self._process, None
        if process is None:
            return None
        process.kill()  # If it has already ended, its exit code stays.
        with suppress(BrokenPipeError), process:
            pass
        return process.wait()

    def _ask(self, page: bytes, selector: bytes, seconds: float) -> bytes:
        """The answer of the process about one page. Empty if the process has ended."""
        try:
            return self._asked(page, selector, seconds)
        except (OSError, RuntimeError) as error:  # No process or no thread is available.
            self.close()
            raise OwnFault(getattr(error, "strerror", None) or str(error)) from error
        except BaseException:  # Otherwise its answer would be read for the next page.
            self.close()
            raise

    def _asked(self, page: bytes, selector: bytes, seconds: float) -> bytes:
        process = self._process = self._process or _start()
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018
        seconds += SECONDS_PER_BYTE * len(page)
        memory = TREE_BYTES + TREE_BYTES_PER_BYTE * len(page)
        with _killed_after(process, seconds * PATIENCE) as is_late:
            try:
                process.stdin.write(HEADER.pack(len(page), len(selector), seconds, memory))
                process.stdin.write(page)
                process.stdin.write(selector)
                process.stdin.flush()
                answer = process.stdout.read(1)
            except BrokenPipeError:
                answer = b""
        if is_late.is_set() and not answer:
            raise Starved("the process that tries pages got no processor time")
        return answer


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - our own script
        _COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


@contextmanager
def _killed_after(process: subprocess.Popen[bytes], seconds: float) -> Iterator[threading.Event]:
    """Kill a process if the block takes longer than this. Then the event is set."""
    is_late = threading.Event()

    def give_up() -> None:
        is_late.set()
        process.kill()

    deadline = threading.Timer(seconds, give_up)
    deadline.daemon = True
    deadline.start()
    try:
        yield is_late
    finally:
        deadline.cancel()


_trial = Trial()
check = _trial.check
"""`Trial.check` of the one trial process that belongs to this process."""

atexit.register(_trial.close)
os.register_at_fork(after_in_child=_trial.__init__)  # type: ignore[misc]
