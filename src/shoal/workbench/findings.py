"""The findings of a check: a line each, with the place to mend."""

from __future__ import annotations

import msgspec


class Finding(msgspec.Struct, frozen=True, order=True):
    """A mistake that was found."""

    file: str
    """A file, or what was checked: `frontier`."""
    line: int
    """0 if it is not known."""
    message: str

    @property
    def text(self) -> str:
        """The finding in one line."""
        where = f"{self.file}:{self.line}" if self.line else self.file
        return self.message if self.message.startswith(where) else f"{where}: {self.message}"
