"""The layout of a command's help: a usage line and grouped options, as in manuals."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any

from typer.core import TyperCommand

OPTIONS = "Options"
SUMMARY_CHARS = 50
"""The list of commands shows this much of the first sentence of a command's help."""
CHOICES_IN_LINE = 6
"""If there are more choices than this, they are listed in the description of the option."""


class HelpfulCommand(TyperCommand):
    """A command with this layout. Values are named by their meaning, not by their type."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The usage line: [OPTIONS], then the arguments."""
        return ["[OPTIONS]", *(_usage(p) for p in self.params if _is_argument(p))]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the options: those without a group first."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], OPTIONS: []}
        params: list[Any] = self.get_params(ctx)
        for param in params:
            if not param.hidden:
                section = "Arguments" if _is_argument(param) else _group(param)
                sections.setdefault(section, []).append((_spelling(param), _about(param)))
        for title, rows in sections.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def _is_argument(param: Any) -> bool:
    return bool(param.param_type_name == "argument")


def _group(param: Any) -> str:
    return getattr(param, "rich_help_panel", None) or OPTIONS


def _usage(argument: Any) -> str:
    name = _name(argument)
    shown = name if argument.required or name.startswith("[") else f"[{name}]"
    return f"{shown}..." if argument.nargs != 1 else shown


def _spelling(param: Any) -> str:
    """The spellings of a parameter: `-o, --output FILE`, `--robots / --no-robots`."""
    if _is_argument(param):
        return _name(param).strip("[]")
    spellings = sorted(param.opts, key=len)
    shown = ", ".join(spellings)
    if param.secondary_opts:
        return " / ".join([shown, *param.secondary_opts])
    return shown if param.is_flag else f"{shown} {_name(param)}"


def _name(param: Any) -> str:
    """The word that stands for the value of a parameter."""
    if param.metavar:
        return str(param.metavar)
    kind = param.type_descriptor
    if kind.is_choice:
        choices = _words(kind.choices or ())
        return str(param.name).upper() if len(choices) > CHOICES_IN_LINE else "|".join(choices)
    if kind.is_path:
        return "FILE"
    is_number = kind.is_ranged or kind.annotation in (int, float)
    return "N" if is_number else str(param.name).upper()


def _words(values: Iterable[Any]) -> list[str]:
    return [str(value.value) if isinstance(value, Enum) else str(value) for value in values]


def _about(param: Any) -> str:
    """The meaning of a parameter, its choices and its default."""
    text, default = str(param.help or ""), param.default
    kind = param.type_descriptor
    if not param.metavar and kind.is_choice and len(kind.choices) > CHOICES_IN_LINE:
        text = f"{text.rstrip('.')}: {', '.join(_words(kind.choices))}."
    is_shown = param.show_default and not param.required and not isinstance(default, bool)
    if not is_shown or default in (None, "", [], ()):
        return text
    return f"{text} [default: {_words([default])[0]}]"
