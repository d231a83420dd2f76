"""A file in which a process says that it is alive, for probes that start another process to look.

It says nothing of stores: while these are away, another process could do no better. The moment in
it is of the machine's monotonic clock, so no change of the time makes a process look dead.
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
"""As long as a watchdog waits where leases have their usual length: see runtime/watchdog.py."""


@contextmanager
def signs_of_life(file: Path | None) -> Iterator[None]:
    """Have the event loop write into the file for as long as this lasts. Raises ConfigError if it
    cannot be written at all. None: nobody wants to know."""
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
    """How long ago the last sign of life was. None: there is none of this machine since it was
    started."""
    try:
        ago_s = time.monotonic() - float(file.read_text("ascii"))
    except (OSError, ValueError):
        return None
    return ago_s if ago_s >= 0 else None


async def _keep_writing(file: Path) -> None:
    while True:
        await asyncio.sleep(WRITE_EVERY_S)
        with suppress(OSError):  # A full disk for a moment, perhaps. If it lasts, we look dead.
            _write(file)


def _write(file: Path) -> None:
    """In one step, so that nobody reads half of it."""
    new = file.with_name(f"{file.name}.new")
    new.write_text(f"{time.monotonic()}", "ascii")
    new.replace(file)
