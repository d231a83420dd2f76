"""Why tasks fail, in words that many share: `TypeError at spider.py:19 in product`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePath
from typing import NamedTuple

import msgspec

SHOWN = 5
"""Causes that are named; the rest is only counted."""

_LONGEST, _READ = 200, 2000
"""Characters of a cause, and of a reason that is read for one: what a handler raised may say
anything."""

_FRAME = re.compile(
    r'^ *(?:[|] *)?File "([^"\n]{1,1000})", line (\d+), in (\S{1,200})', re.MULTILINE
)
_ADDRESS = re.compile(r"\b[a-z]+://\S+")
_LAST_PART = re.compile(r"[/\\]")
_CALLERS = re.compile(
    r"[/\\]shoal[/\\](?:spider[/\\](?:harvest|hooks|outgoing|reading|spider)"
    r"|worker[/\\]visits[/\\]visitor)\.py$"
)
"""What of ours calls the user's code, or stands in for it."""
_LIBRARIES = re.compile(r"[/\\](?:site-packages|dist-packages|python3\.\d+)[/\\]|^<")


class Cause(msgspec.Struct, frozen=True):
    """What some tasks died of, or some items were rejected for."""

    count: int
    cause: str
    reason: str = ""
    """What one of them said."""
    url: str = ""
    """Where one of them was found."""

    @property
    def told(self) -> str:
        """In one line, for people."""
        return f"{self.count:,} × {self.cause}"


class Failure(NamedTuple):
    """One of many that are to be counted by cause."""

    cause: str
    reason: str
    url: str


class _Frame(NamedTuple):
    file: str
    line: str
    function: str


def cause_of(reason: str, traceback: str, handler: str) -> str:
    """What a task died of, without what is only its own. Where a handler raised: which error, and
    the line of the user's code that it came from."""
    if place := _place(traceback, handler):
        return f"{_cut(reason.partition(':')[0])} at {place}"
    return _cut(_ADDRESS.sub("…", reason[:_READ])) or "no reason given"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def counted_by_cause(failures: Iterable[Failure]) -> list[Cause]:
    """The causes, the most frequent first; each with the first that had it."""
    first: dict[str, Failure] = {}
    counts: dict[str, int] = {}
    for failure in failures:
        first.setdefault(failure.cause, failure)
        counts[failure.cause] = counts.get(failure.cause, 0) + 1
    ranked = sorted(counts.items(), key=lambda cause: -cause[1])
    return [Cause(count, *first[cause]) for cause, count in ranked]


def lines_of(causes: list[Cause], total: int, noun: str) -> list[str]:
    """The causes, for people. `total` is how many there are in all: of very many, only some were
    looked at, and then it is said how many."""
    lines = [cause.told for cause in causes[:SHOWN]]
    if others := causes[SHOWN:]:
        lines.append(f"{sum(cause.count for cause in others):,} × other causes")
    looked_at = sum(cause.count for cause in causes)
    if looked_at < total:
        lines.append(f"(of {looked_at:,} {noun} that were looked at)")
    return lines


def _place(traceback: str, handler: str) -> str:
    """Where the user's code was, by a traceback: its innermost line. What it called of libraries is
    left out, where it is known which file is the user's: that of the handler. Empty: it is in none
    of these lines."""
    found = [_Frame(*frame.groups()) for frame in _FRAME.finditer(traceback)]
    frames = [frame for frame in found if not _CALLERS.search(frame.file)]
    if not frames:
        return ""
    names = [frame.function for frame in frames]
    begin = names.index(handler) if handler in names else len(frames) - 1
    folder = PurePath(frames[begin].file).parent
    inner = [frame for frame in frames[begin:] if _is_own(frame.file, folder)]
    chosen = inner[-1] if inner else frames[-1]
    return f"{_LAST_PART.split(chosen.file)[-1]}:{chosen.line} in {chosen.function}"


def _is_own(file: str, folder: PurePath) -> bool:
    return PurePath(file).is_relative_to(folder) and not _LIBRARIES.search(file)
