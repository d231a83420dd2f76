"""What a check finds: a line each, with the place where it is to be mended."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

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


def meant(name: str, known: Iterable[str]) -> str:
    """`; did you mean product?`, or nothing."""
    near = get_close_matches(name, sorted(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""
