"""Recognizes a crashed command by its stderr, and ignores errors that spiders' handlers raised."""

from __future__ import annotations

import re

_OF_A_HANDLER = re.compile(
    r"^\S+ ERROR +.+, with \S+\nTraceback \(most recent call last\):$", re.MULTILINE
)
"""The start of a handler's traceback in the log, which shows the first of each kind of error. Such
an error is no fault of the command."""


def has_crashed(stderr: str) -> bool:
    """Whether stderr has a traceback that is not a handler's."""
    return "Traceback" in _OF_A_HANDLER.sub("", stderr)
