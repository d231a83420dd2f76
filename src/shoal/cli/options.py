"""The settings as command-line options, made from the one place where settings are defined."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from shoal import config
from shoal.cli import display
from shoal.config import SETTINGS, Settings
from shoal.core.fields import Field
from shoal.drivers.sqlite import path_of
from shoal.errors import ConfigError

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
CrawlName = Annotated[str, typer.Argument(metavar="CRAWL", help="The crawl's name.")]

STORES = ("frontier", "results")
FLEET = tuple(SETTINGS)


def with_settings(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command an option for each of these settings; it gets them as `options`. Who may say
    where the frontier is may say where its state is."""
    if "frontier" in names and "state" not in names:
        names = (*names, "state")

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def wrapper(**given: Any) -> Any:
            options = {name: given.pop(name) for name in names}
            return command(**given, options=options)

        own = [p for p in _signature(command).parameters.values() if p.name != "options"]
        wrapper.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [*own, *(_parameter(SETTINGS[name]) for name in names)]
        )
        return wrapper

    return decorate


def settings_from(options: Mapping[str, Any], spider: Mapping[str, Any] | None = None) -> Settings:
    """The settings of this process."""
    return config.load(spider=spider, options=options, environ=os.environ)


def existing_stores(options: Mapping[str, Any]) -> Settings:
    """The settings of a command that only looks: it must not make the stores it looks into."""
    settings = settings_from(options)
    for name in STORES:
        if name not in options:
            continue
        address = getattr(settings, name)
        if address and lacks_file(address):
            raise ConfigError(f"no crawls here: {path_of(address)} does not exist (see --{name})")
    return settings


def lacks_file(address: str) -> bool:
    """Whether a store is a file that is not there."""
    return address.startswith("sqlite:") and not path_of(address).exists()


def show_help(context: typer.Context) -> None:
    """What a group of commands does when none is named."""
    if context.invoked_subcommand is None:
        display.say_lines(context.get_help())


def _signature(command: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(command, eval_str=True)


def _parameter(setting: Field) -> inspect.Parameter:
    option = typer.Option(
        _spelling(setting),
        metavar=f"<{'|'.join(setting.choices)}>" if setting.choices else None,
        help=f"{setting.description}. [default: {_default(setting.default)}]",
        show_default=False,
    )
    # Lists and choices are text here: all sources of settings have them read in one place.
    plain = setting.type if setting.type in (bool, int, float) else str
    return inspect.Parameter(
        setting.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[plain | None, option],
    )


def _spelling(setting: Field) -> str:
    dashed = setting.name.replace("_", "-")
    return f"--{dashed}/--no-{dashed}" if setting.type is bool else f"--{dashed}"


def _default(value: Any) -> str:
    if value in (None, ()):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ",".join(value) if isinstance(value, tuple) else str(value)
