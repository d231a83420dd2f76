"""What a command that crashed leaves on stderr, told from what a spider's handlers raised."""

from __future__ import annotations

import re

_OF_A_HANDLER = re.compile(
    r"^\S+ ERROR +.+, with \S+\nTraceback \(most recent call last\):$", re.MULTILINE
)
"""The log shows the first traceback of each error of a handler. That is no fault of the command."""


def has_crashed(stderr: str) -> bool:
    """Whether there is any other traceback."""
    return "Traceback" in _OF_A_HANDLER.sub("", stderr)
