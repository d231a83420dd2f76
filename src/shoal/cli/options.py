"""The settings as command-line options, made from the definitions of the settings."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Container, Mapping
from typing import Annotated, Any

import typer

from shoal import config
from shoal.cli import display, panels
from shoal.cli.help import OPTIONS
from shoal.config import SETTINGS, Settings
from shoal.core.fields import Field
from shoal.drivers.sqlite import path_of
from shoal.errors import ConfigError

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
CrawlName = Annotated[str, typer.Argument(metavar="CRAWL", help="The crawl's name.")]

STORES = ("frontier", "results")
FLEET = panels.ALL


def with_settings(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command an option for each of these settings; it gets them as `options`. A command
    with `--frontier` also gets `--state`."""
    if "frontier" in names and "state" not in names:
        names = (*names, "state")

    def panel_of(name: str) -> str:
        """The group of an option in help. Commands with only a few settings need no groups."""
        are_many = len(names) > len(FLEET) // 2
        return panels.PANEL_OF.get(name, panels.MORE) if are_many else OPTIONS

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def wrapper(**given: Any) -> Any:
            options = {name: given.pop(name) for name in names}
            return command(**given, options=options)

        own = [p for p in _signature(command).parameters.values() if p.name != "options"]
        wrapper.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [*own, *(_parameter(SETTINGS[name], panel_of(name)) for name in names)]
        )
        return wrapper

    return decorate


def settings_from(options: Mapping[str, Any], spider: Mapping[str, Any] | None = None) -> Settings:
    """The settings of this process."""
    return config.load(spider=spider, options=options, environ=os.environ)


def existing_stores(options: Mapping[str, Any]) -> Settings:
    """The settings of a command that only reads stores: it must not create them."""
    settings = settings_from(options)
    refuse_missing_stores(settings, options)
    return settings


def refuse_missing_stores(settings: Settings, options: Container[str]) -> None:
    """Raise ConfigError if a store is a missing file and the command has an option for it."""
    for name in STORES:
        if name not in options:
            continue
        address = getattr(settings, name)
        if address and lacks_file(address):
            raise ConfigError(f"no crawls here: {path_of(address)} does not exist (see --{name})")


def lacks_file(address: str) -> bool:
    """Whether a store is a file that does not exist."""
    return address.startswith("sqlite:") and not path_of(address).exists()


def show_help(context: typer.Context) -> None:
    """Show the help of a group of commands if no command is named."""
    if context.invoked_subcommand is None:
        display.say_lines(context.get_help())


def _signature(command: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(command, eval_str=True)


def _parameter(setting: Field, panel: str) -> inspect.Parameter:
    option = typer.Option(
        _spelling(setting),
        metavar=_value(setting),
        help=_about(setting),
        show_default=False,
        rich_help_panel=panel,
    )
    # All values but switches are text here: settings from all sources are parsed in one place.
    return inspect.Parameter(
        setting.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[(bool if setting.type is bool else str) | None, option],
    )


def _value(setting: Field) -> str:
    """The word that stands for the value in help."""
    if setting.stands_for or setting.choices:
        return setting.stands_for or "|".join(setting.choices)
    if setting.type in (int, float):
        return "SECONDS" if setting.name.endswith("_s") else "N"
    return setting.name.rpartition("_")[2].upper()


def _about(setting: Field) -> str:
    default = setting.unset or _default(setting.default)
    return f"{setting.description}." + (f" [default: {default}]" if default else "")


def _spelling(setting: Field) -> str:
    dashed = setting.name.replace("_", "-")
    return f"--{dashed}/--no-{dashed}" if setting.type is bool else f"--{dashed}"


def _default(value: Any) -> str:
    if value in (None, ()):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, tuple) else str(value)
