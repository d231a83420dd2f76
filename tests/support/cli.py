"""The commands and options of the command line, as Typer built them."""

from __future__ import annotations

from functools import cache
from typing import Any

import typer

from shoal.cli import app


def command_names() -> list[str]:
    """Every command, including subcommands like `dead list`."""
    return list(commands())


@cache
def options_of(command: str) -> dict[str, Any]:
    """The options of a command, by each of their names (`--name`, `-n`)."""
    parameters = commands()[command].params
    options = [one for one in parameters if one.param_type_name == "option"]
    return {
        spelling: option
        for option in options
        for spelling in (*option.opts, *option.secondary_opts)
    }


def help_of(command: Any) -> str:
    """What --help shows of a command, in 80 columns."""
    context = command.make_context(command.name, [], resilient_parsing=True, terminal_width=80)
    shown: str = command.get_help(context)
    return shown


@cache
def commands() -> dict[str, Any]:
    """The commands by name. Cached, because Typer builds them anew each time."""
    return dict(_walk("", typer.main.get_command(app)))


def _walk(prefix: str, group: Any) -> list[tuple[str, Any]]:
    found = []
    for name, command in group.commands.items():
        full = f"{prefix} {name}".strip()
        found.append((full, command))
        if hasattr(command, "commands"):
            found += _walk(full, command)
    return found
