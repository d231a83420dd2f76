"""A file with a process's sign of life, for liveness probes that run as another process.

It does not depend on stores: while they are away, a restarted process could do no better. The time
in the file is that of the monotonic clock, so a clock change never makes a process look dead.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shoal.errors import ConfigError

WRITE_EVERY_S = 5.0
DEAD_AFTER_S = 60.0
"""The time after which a watchdog ends a process with the default lease: runtime/watchdog.py."""


@contextmanager
def signs_of_life(file: Path | None) -> Iterator[None]:
    """Write signs of life into a file, from the event loop, while the context lasts.

    Does nothing without a file. Raises ConfigError if the file cannot be written at the start.
    """
    if file is None:
        yield
        return
    try:
        _write(file)
    except OSError as error:
        raise ConfigError(f"--alive-file {file}: {error.strerror}") from None
    writing = asyncio.get_running_loop().create_task(_keep_writing(file))
    try:
        yield
    finally:
        writing.cancel()
        with suppress(OSError):
            file.unlink()


def silent_s(file: Path) -> float | None:
    """How long ago the last sign of life was. None if there is none since this machine started."""
    try:
        ago_s = time.monotonic() - float(file.read_text("ascii"))
    except (OSError, ValueError):
        return None
    return ago_s if ago_s >= 0 else None


async def _keep_writing(file: Path) -> None:
    while True:
        await asyncio.sleep(WRITE_EVERY_S)
        # The disk may be full for a moment. If that lasts, the process looks dead.
        with suppress(OSError):
            _write(file)


def _write(file: Path) -> None:
    """Write the current time in one step, so that no reader sees half of it."""
    new = file.with_name(f"{file.name}.new")
    new.write_text(f"{time.monotonic()}", "ascii")
    new.replace(file)
