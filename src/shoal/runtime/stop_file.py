"""A file whose appearance ends the work in good order. Clouds tell that a machine is about to be
taken away at an address of theirs; what asks there makes the file."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from shoal.runtime.patience import wait_for_event

LOOK_EVERY_S = 1.0

log = logging.getLogger("shoal")


class StopFile:
    """A service that ends when the file is there: so those beside it are drained."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._draining = asyncio.Event()

    async def run(self) -> None:
        """Wait for the file."""
        while not self._draining.is_set():
            if _is_there(self._file):
                log.warning("%s is there: stopping, what is in hand is finished", self._file)
                return
            await wait_for_event(self._draining, LOOK_EVERY_S)

    def drain(self) -> None:
        """Wait no longer."""
        self._draining.set()


def _is_there(file: Path) -> bool:
    try:
        return file.exists()
    except OSError:  # Nobody lets us look.
        return False
