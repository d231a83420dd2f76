"""A line that is redrawn at the bottom of a terminal, below all other output."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text

from shoal.runtime.logs import ERASE_BELOW


@contextmanager
def live_line(terminal: Console) -> Iterator[Callable[[Text], None]]:
    """Give a function that draws the line, and erase the line at the end.

    Between drawings, the cursor stays at the start of the line. A log line erases it and takes its
    place; the next drawing is below (`runtime.logs.over_progress`). A line that is too long for the
    terminal has several rows.
    """

    def draw(line: Text) -> None:
        with terminal.capture() as drawn:
            terminal.print(line, end="")
        rows_below = drawn.get().count("\n")
        back = "\r" + (f"\x1b[{rows_below}A" if rows_below else "")
        terminal.file.write(ERASE_BELOW + drawn.get() + back)
        terminal.file.flush()

    terminal.show_cursor(False)
    try:
        yield draw
    finally:
        terminal.file.write(ERASE_BELOW)
        terminal.show_cursor(True)
