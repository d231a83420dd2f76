"""Lists spiders in a table."""

from __future__ import annotations

from itertools import islice
from typing import Any

import msgspec

from shoal.errors import ConfigError
from shoal.fleet.spider_files import FoundSpider
from shoal.spider.own_settings import settings_of
from shoal.spider.spider import Spider, handlers_of

MAX_URLS = 3

COLUMNS = ("target", "name", "starts at", "handlers", "settings")


class Listed(msgspec.Struct, frozen=True):
    """One spider."""

    target: str
    name: str
    start_urls: list[str]
    """The first start URLs. Empty if a method gives them."""
    more_urls: int
    handlers: list[str]
    settings: dict[str, str]
    """The settings that its class sets."""


def listed(found: FoundSpider) -> Listed:
    """The facts about a spider, from its class alone."""
    spider = found.spider
    urls = [] if isinstance(spider.start_urls, str) else list(map(str, spider.start_urls))
    handlers = handlers_of(spider)
    if spider.parse is Spider.parse:
        handlers -= {"parse"}
    return Listed(
        target=found.target,
        name=str(spider.name),
        start_urls=urls[:MAX_URLS],
        more_urls=len(urls[MAX_URLS:]),
        handlers=sorted(handlers, key=lambda name: (name != "parse", name)),
        settings={name: _shown(value) for name, value in _settings(spider).items()},
    )


def _settings(spider: type[Spider]) -> dict[str, Any]:
    try:
        return settings_of(spider)
    except ConfigError:  # `shoal check` reports it.
        return {}


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple | set | frozenset):
        return ",".join(map(str, islice(value, 10)))
    return str(value)


def row(spider: Listed) -> tuple[str, ...]:
    """The row of a spider in the table."""
    starts = list(spider.start_urls)
    if spider.more_urls:
        starts.append(f"and {spider.more_urls:,} more")
    settings = [f"{name}={value}" for name, value in spider.settings.items()]
    handlers = ", ".join(spider.handlers)
    return spider.target, spider.name, ", ".join(starts), handlers, ", ".join(settings)
