"""Examples at the end of a command's help."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

Command = TypeVar("Command", bound=Callable[..., Any])

AS_IT_IS = "\b"
"""Stands before a paragraph of help whose lines must not be wrapped."""


def examples(*commands: str) -> Callable[[Command], Command]:
    """Show these command lines at the end of a command's help."""
    shown = "\n".join(f"  {command}" for command in commands)

    def decorate(command: Command) -> Command:
        title = "Examples:" if len(commands) > 1 else "Example:"
        command.__doc__ = f"{inspect.getdoc(command)}\n\n{title}\n\n{AS_IT_IS}\n{shown}\n"
        return command

    return decorate
