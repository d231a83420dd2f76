"""The arguments of a spider on the command line: `-a category=books`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import typer

from shoal.cli.options import settings_from
from shoal.config import Settings
from shoal.errors import ConfigError
from shoal.fleet import target
from shoal.fleet.target import is_scrapy
from shoal.spider.crawl_names import settings_with
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
    """The arguments by name. An argument that is given several times has a list of values."""
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


class LoadedSpider(NamedTuple):
    """A spider, the target that loads it, and the settings of a process that runs it."""

    targets: list[str]
    spider: type[Spider]
    settings: Settings


def load_spider(
    targets: list[str], args: list[str] | None, options: Mapping[str, Any]
) -> LoadedSpider:
    """The spider of a target, with these arguments in its settings. Raises ConfigError."""
    found = _loaded(targets, args, options)
    if is_scrapy(targets):
        return found
    return found._replace(settings=settings_with(found.spider, found.settings, given(args)))


def load_for_worker(
    targets: list[str], args: list[str] | None, options: Mapping[str, Any]
) -> LoadedSpider:
    """The same for a worker, which gets the arguments from the crawl. Raises ConfigError.

    Without arguments, it only has to know the name of the crawl.
    """
    if args:
        return load_spider(targets, args, options)
    found = _loaded(targets, args, options)
    name = found.spider.name
    if "{" in name and found.settings.name is None and not is_scrapy(targets):
        raise ConfigError(
            f"which crawl is it? Its name is {name}: give --name, or the -a that started it"
        )
    return found


def _loaded(targets: list[str], args: list[str] | None, options: Mapping[str, Any]) -> LoadedSpider:
    if is_scrapy(targets):
        targets = [*targets, *(args or [])]
    spider = target.load(targets)
    return LoadedSpider(targets, spider, settings_from(options, settings_of(spider)))
