"""Shows progress on stderr: one changing line on a terminal, ten lines elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from shoal.insight.figures import duration

EVERY_S = 0.2


class ProgressLine:
    """The progress of something that has a known number of pages."""

    def __init__(self, name: str, pages: int) -> None:
        self._name = name
        self._pages = pages
        self._began = time.monotonic()
        self._is_terminal = sys.stderr.isatty()
        self._next_s = 0.0
        self._next_pages = 0
        self._told = 0

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None and self._told < self._pages:
            self._say(self._pages)
        if self._is_terminal:
            print(file=sys.stderr)

    def at(self, pages: int) -> None:
        """Show that `pages` pages are done, if it is time for that."""
        if self._is_terminal:
            if time.monotonic() >= self._next_s:
                self._next_s = time.monotonic() + EVERY_S
                self._say(pages)
        elif pages >= self._next_pages:
            self._next_pages += self._pages // 10
            self._say(pages)

    def _say(self, pages: int) -> None:
        self._told = pages
        passed_s = time.monotonic() - self._began
        left = ""
        if self._pages // 20 < pages < self._pages:
            left = f", {duration(passed_s * (self._pages / pages - 1))} left"
        text = f"{self._name}: {pages / self._pages:.0%}, {duration(passed_s)}{left}"
        if self._is_terminal:
            print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)
        else:
            print(text, file=sys.stderr, flush=True)
