"""Groups failures by cause, such as `TypeError at spider.py:19 in product`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePath
from typing import NamedTuple

import msgspec

SHOWN = 5
"""How many causes are listed by name; the rest are only counted."""

_LONGEST, _READ = 200, 2000
"""Limits in characters: of a cause, and of how much of a reason is read to find its cause. A
handler's error may say anything, at any length."""

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
    """Why some tasks died, or why some items were rejected."""

    count: int
    cause: str
    reason: str = ""
    """The full reason of one of them."""
    url: str = ""
    """The URL of one of them."""

    @property
    def told(self) -> str:
        """The cause and its count on one line, for people."""
        return f"{self.count:,} × {self.cause}"


class Failure(NamedTuple):
    """A single failure, to be counted by its cause."""

    cause: str
    reason: str
    url: str


class _Frame(NamedTuple):
    file: str
    line: str
    function: str


def cause_of(reason: str, traceback: str, handler: str) -> str:
    """The cause of a task's death, without the details that only this task has.

    If a handler raised, it is the type of the error and the line of the user's code that it came
    from.
    """
    if place := _place(traceback, handler):
        return f"{_cut(reason.partition(':')[0])} at {place}"
    return _cut(_ADDRESS.sub("…", reason[:_READ])) or "no reason given"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def counted_by_cause(failures: Iterable[Failure]) -> list[Cause]:
    """Count failures by cause, the most frequent first. Each cause has the reason and URL of the
    first failure that had it."""
    first: dict[str, Failure] = {}
    counts: dict[str, int] = {}
    for failure in failures:
        first.setdefault(failure.cause, failure)
        counts[failure.cause] = counts.get(failure.cause, 0) + 1
    ranked = sorted(counts.items(), key=lambda cause: -cause[1])
    return [Cause(count, *first[cause]) for cause, count in ranked]


def lines_of(causes: list[Cause], total: int, noun: str) -> list[str]:
    """The causes as lines for people.

    `total` is the number of all failures. If only some of them were looked at, the last line says
    how many.
    """
    lines = [cause.told for cause in causes[:SHOWN]]
    if others := causes[SHOWN:]:
        lines.append(f"{sum(cause.count for cause in others):,} × other causes")
    looked_at = sum(cause.count for cause in causes)
    if looked_at < total:
        lines.append(f"(of {looked_at:,} {noun} that were looked at)")
    return lines


def _place(traceback: str, handler: str) -> str:
    """The innermost line of the user's code in a traceback, as `file:line in function`.

    The user's code is what lies in the folder of the handler's file; library code below it is
    skipped. If the handler is not in the traceback, the innermost frame stands for it. Empty: no
    line is the user's.
    """
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
