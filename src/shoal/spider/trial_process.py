"""The process in which odd pages are tried: see trial.py.

It runs as a script and imports only the parser, so that it starts at once. It reads one page after
the other from stdin, and answers each with one byte. If a page takes too much processor time, the
system ends the process.
"""

from __future__ import annotations

import resource
import signal
import struct
import sys
from contextlib import suppress
from typing import BinaryIO

from selectolax.lexbor import LexborHTMLParser, SelectolaxError

HEADER = struct.Struct("!QQdQ")
"""The lengths of the page and of a selector, seconds of processor time, and bytes of memory."""

FINE, TOO_LARGE = b"+", b"m"

OWN_BYTES = 256 * 1024 * 1024
"""Memory for the process itself, without any page. Most of it is never used."""

NOT_THERE = "shoal-nothing *"
"""A selector that never matches, so that all ancestors of each element are searched. For deeply
nested elements that takes longer than parsing, and handlers use such selectors."""


def main() -> None:
    """Try pages until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the worker.
    _serve(sys.stdin.buffer, sys.stdout.buffer)


def _serve(pages: BinaryIO, answers: BinaryIO) -> None:
    while len(header := pages.read(HEADER.size)) == HEADER.size:
        length, selector_length, seconds, memory = HEADER.unpack(header)
        page, selector = pages.read(length), pages.read(selector_length).decode()
        _limit_memory(OWN_BYTES + memory)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        answer = _answer(page, selector)
        signal.setitimer(signal.ITIMER_PROF, 0)
        answers.write(answer)
        answers.flush()


def _limit_memory(wanted: int) -> None:
    """Set a memory limit, at most the system's, that the next page can raise again."""
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    if most != resource.RLIM_INFINITY:
        wanted = min(wanted, most)
    with suppress(OSError, ValueError):  # Some systems have no such limit.
        resource.setrlimit(resource.RLIMIT_AS, (wanted, most))


def _answer(page: bytes, selector: str) -> bytes:
    try:
        root = LexborHTMLParser(page).root
        if root is not None:
            root.css(selector)
    except (SelectolaxError, MemoryError):
        return TOO_LARGE
    return FINE


if __name__ == "__main__":
    main()
