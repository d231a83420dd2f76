"""Handles SIGINT and SIGTERM: the first one drains the work, the second ends it at once."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

log = logging.getLogger("shoal")


SHOW_CURSOR = "\x1b[?25h"


@contextmanager
def stopped_by_signals(workers: Workers) -> Iterator[asyncio.Event]:
    """The first SIGINT or SIGTERM sets the event and drains; the second stops at once."""
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    numbers = (signal.SIGINT, signal.SIGTERM)

    def drain() -> None:
        for number in numbers:
            loop.remove_signal_handler(number)
            loop.add_signal_handler(number, stop)
        log.warning("stopping: finishing what is in hand; once more stops at once")
        stopping.set()
        workers.drain()

    def stop() -> None:
        # This leaves the same state as a crash, so nothing is lost.
        if isinstance(workers, HasProcesses):
            workers.kill()
        if sys.stderr is not None and sys.stderr.isatty():
            sys.stderr.write(SHOW_CURSOR)  # The live status line hides it.
            sys.stderr.flush()
        os._exit(1)

    try:
        for number in numbers:
            loop.add_signal_handler(number, drain)
    except (ValueError, RuntimeError):  # Only the main thread can handle signals.
        yield stopping
        return
    try:
        yield stopping
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


class Workers(Protocol):
    """Something that does work: a fleet of processes, or one worker in this process."""

    async def run(self) -> None: ...

    def drain(self) -> None: ...


@runtime_checkable
class HasProcesses(Protocol):
    """Workers with processes of their own, which would outlive this one."""

    def kill(self) -> None: ...
