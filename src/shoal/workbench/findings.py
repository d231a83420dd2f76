"""What a check finds: a line each, with the place where it is to be mended."""

from __future__ import annotations

import msgspec


class Finding(msgspec.Struct, frozen=True, order=True):
    """Something that is wrong."""

    file: str
    """A file, or what was looked at: `frontier`."""
    line: int
    """0 where it is not known."""
    message: str

    @property
    def told(self) -> str:
        """The one line for it."""
        where = f"{self.file}:{self.line}" if self.line else self.file
        return self.message if self.message.startswith(where) else f"{where}: {self.message}"
