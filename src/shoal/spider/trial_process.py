"""The process in which odd pages are tried: see trial.py. It runs as a script of its own and
imports no more than the parser, so that it starts at once.

It reads one page after the other from stdin, and answers with one byte each. A page that takes too
much time ends it: the system keeps the time.
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
"""What the process itself may take, without any page. Most of it is never touched."""

NOT_THERE = "shoal-nothing *"
"""Nothing is in such an element, so all that an element is in is looked at. Where elements are deep
in one another, that takes longer than to parse them, and handlers ask such questions."""


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
    """Never more than the system lets this process have, and the next page may have it all."""
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    if most != resource.RLIM_INFINITY:
        wanted = min(wanted, most)
    with suppress(OSError, ValueError):  # Some systems keep no such limit.
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
