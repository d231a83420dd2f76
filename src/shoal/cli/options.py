"""The settings as command-line options, made from the one place where settings are defined."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import msgspec
import typer

from shoal import config
from shoal.cli import display
from shoal.config import LISTS, Settings
from shoal.drivers.sqlite import path_of
from shoal.errors import ConfigError

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
CrawlName = Annotated[str, typer.Argument(metavar="CRAWL", help="The crawl's name.")]

STORES = ("frontier", "results")
FLEET = tuple(Settings.__struct_fields__)

_FIELDS = {field.name: field for field in msgspec.structs.fields(Settings)}
_HINTS = inspect.get_annotations(config.Rules, eval_str=True) | inspect.get_annotations(
    Settings, eval_str=True
)


def with_settings(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command an option for each of these settings; it gets them as `options`."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def wrapper(**given: Any) -> Any:
            options = {name: given.pop(name) for name in names}
            return command(**given, options=options)

        own = [p for p in _signature(command).parameters.values() if p.name != "options"]
        wrapper.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [*own, *(_parameter(name) for name in names)]
        )
        return wrapper

    return decorate


def settings_from(options: Mapping[str, Any], spider: Mapping[str, Any] | None = None) -> Settings:
    """The settings of this process."""
    return config.load(spider=spider, options=options, environ=os.environ)


def existing_stores(options: Mapping[str, Any]) -> Settings:
    """The settings of a command that only looks: it must not make the stores it looks into."""
    settings = settings_from(options)
    for name in options:
        address = getattr(settings, name)
        if address.startswith("sqlite:") and not (path := path_of(address)).exists():
            raise ConfigError(f"no crawls here: {path} does not exist (see --{name})")
    return settings


def show_help(context: typer.Context) -> None:
    """What a group of commands does when none is named."""
    if context.invoked_subcommand is None:
        display.say_lines(context.get_help())


def _signature(command: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(command, eval_str=True)


def _parameter(name: str) -> inspect.Parameter:
    field = _FIELDS[name]
    option = typer.Option(
        *_spellings(name, field.default),
        help=f"{_description(name)}. [default: {_default(field.default)}]",
        show_default=False,
    )
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[_plain_type(name, field.default) | None, option],
    )


def _spellings(name: str, default: Any) -> list[str]:
    dashed = name.replace("_", "-")
    return [f"--{dashed}/--no-{dashed}"] if isinstance(default, bool) else [f"--{dashed}"]


def _plain_type(name: str, default: Any) -> Any:
    if name in LISTS or default is None:
        return int if name.startswith("max_") else str
    return type(default)


def _description(name: str) -> str:
    metas = getattr(_HINTS[name], "__metadata__", ())
    return str(next(m.description for m in metas if getattr(m, "description", None)))


def _default(value: Any) -> str:
    if value in (None, ()):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ",".join(value) if isinstance(value, tuple) else str(value)
