"""A file whose appearance stops the work gently.

Clouds announce at a URL that they will take a machine away. A helper that polls this URL can create
the file.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from shoal.runtime.patience import wait_for_event

LOOK_EVERY_S = 1.0

log = logging.getLogger("shoal")


class StopFile:
    """A service that ends when the file appears, so that the services beside it are drained."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._draining = asyncio.Event()

    async def run(self) -> None:
        """Wait until the file appears or `drain` is called."""
        while not self._draining.is_set():
            if _is_there(self._file):
                log.warning("%s is there: stopping, what is in hand is finished", self._file)
                return
            await wait_for_event(self._draining, LOOK_EVERY_S)

    def drain(self) -> None:
        """Stop waiting."""
        self._draining.set()


def _is_there(file: Path) -> bool:
    try:
        return file.exists()
    except OSError:  # For example, no permission to look.
        return False
