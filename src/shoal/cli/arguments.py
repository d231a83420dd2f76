"""What a spider is told on the command line: `-a category=books`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import typer

from shoal.cli.options import settings_from
from shoal.config import Settings
from shoal.errors import ConfigError
from shoal.fleet import target
from shoal.fleet.target import is_scrapy
from shoal.spider.crawl_names import told
from shoal.spider.own_settings import settings_of
from shoal.spider.spider import Spider

ArgumentOptions = Annotated[
    list[str] | None,
    typer.Option(
        "-a",
        "--arg",
        metavar="NAME=VALUE",
        help="An argument of the spider. May be repeated.",
        show_default=False,
    ),
]


def given(options: list[str] | None) -> dict[str, Any]:
    """The arguments by name. One that is given several times has a list of values."""
    found: dict[str, Any] = {}
    for text in options or []:
        name, equals, value = text.partition("=")
        if not equals or not name.strip().isidentifier():
            raise ConfigError(f"-a {text[:80]}: write -a NAME=VALUE")
        name = name.strip()
        if name in found:
            before = found[name]
            found[name] = [*(before if isinstance(before, list) else [before]), value]
        else:
            found[name] = value
    return found


class Told(NamedTuple):
    """A spider, the target that loads it, and the settings of a process that runs it."""

    targets: list[str]
    spider: type[Spider]
    settings: Settings


def told_spider(targets: list[str], args: list[str] | None, options: Mapping[str, Any]) -> Told:
    """The spider that a target names, told these arguments. Raises ConfigError."""
    found = _loaded(targets, args, options)
    if is_scrapy(targets):
        return found
    return found._replace(settings=told(found.spider, found.settings, given(args)))


def told_worker(targets: list[str], args: list[str] | None, options: Mapping[str, Any]) -> Told:
    """The same of a worker, whom the crawl tells the rest: without arguments, it only has to know
    the name of the crawl. Raises ConfigError."""
    if args:
        return told_spider(targets, args, options)
    found = _loaded(targets, args, options)
    name = found.spider.name
    if "{" in name and found.settings.name is None and not is_scrapy(targets):
        raise ConfigError(
            f"which crawl is it? Its name is {name}: give --name, or the -a that started it"
        )
    return found


def _loaded(targets: list[str], args: list[str] | None, options: Mapping[str, Any]) -> Told:
    if is_scrapy(targets):
        targets = [*targets, *(args or [])]
    spider = target.load(targets)
    return Told(targets, spider, settings_from(options, settings_of(spider)))
