"""The command line as typer built it: its commands and their options."""

from __future__ import annotations

from typing import Any

import typer

from shoal.cli import app

_ROOT: Any = typer.main.get_command(app)


def command_names() -> list[str]:
    """Every command, `dead list` and the like included."""
    return [name for name, _ in _walk("", _ROOT)]


def options_of(command: str) -> dict[str, Any]:
    """The options of a command, by each of their spellings."""
    found: Any = dict(_walk("", _ROOT))[command]
    options = [parameter for parameter in found.params if parameter.param_type_name == "option"]
    return {
        spelling: option
        for option in options
        for spelling in (*option.opts, *option.secondary_opts)
    }


def _walk(prefix: str, group: Any) -> list[tuple[str, Any]]:
    found = []
    for name, command in group.commands.items():
        full = f"{prefix} {name}".strip()
        found.append((full, command))
        if hasattr(command, "commands"):
            found += _walk(full, command)
    return found
