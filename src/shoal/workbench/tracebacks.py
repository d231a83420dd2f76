"""Shortens tracebacks to the lines of the user's code."""

from __future__ import annotations

import re
from pathlib import Path

_OWN = str(Path(__file__).parent.parent) + "/"
_FRAME = re.compile(r'  File "(.+)", line \d+')
MAX_FRAMES = 12


def users_lines(traceback: str) -> str:
    """The last few frames of a traceback that are not in Shoal itself."""
    heads: list[str] = []
    frames: list[list[str]] = []
    ends: list[str] = []
    for line in traceback.splitlines():
        if _FRAME.match(line):
            frames.append([line])
        elif frames and line.startswith("    "):
            frames[-1].append(line)
        else:
            (ends if frames else heads).append(line)
    own = [frame for frame in frames if not _is_own(frame[0])]
    shown = [line for frame in own[-MAX_FRAMES:] for line in frame]
    return "\n".join([*heads[-1:], *shown, *ends])


def _is_own(line: str) -> bool:
    found = _FRAME.match(line)
    return found is not None and found[1].startswith(_OWN)
