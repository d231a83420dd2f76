"""Tables of shoal.toml that a long-running process reads again when the file changes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sized
from pathlib import Path
from typing import Generic, TypeVar

from shoal import config
from shoal.errors import ConfigError

T = TypeVar("T", bound=Sized)

log = logging.getLogger("shoal")


class Reread(Generic[T]):
    """Tables of shoal.toml, read again when the file changes."""

    def __init__(self, folder: Path, what: str, load: Callable[[Path], T]) -> None:
        """`what` is the name of the tables in the log. Raises whatever `load` raises."""
        self._folder = folder
        self._what = what
        self._load = load
        self._changed_at = self._stamp()
        self._said = load(folder)

    def read(self) -> T:
        """The current tables. While the file has errors, the last valid ones."""
        stamp = self._stamp()
        if stamp != self._changed_at:
            self._changed_at = stamp
            try:
                config.load(folder=self._folder)  # The other settings must be valid too.
                self._said = self._load(self._folder)
                file, count = config.CONFIG_FILE, len(self._said)
                log.info("%s was read again; %s: %d", file, self._what, count)
            except ConfigError as error:
                log.error("%s; the %s stay as they were", error, self._what)
        return self._said

    def _stamp(self) -> tuple[int, int]:
        try:
            stat = (self._folder / config.CONFIG_FILE).stat()
        except OSError:
            return 0, 0
        return stat.st_mtime_ns, stat.st_size
