"""The settings that a spider brings: its class attributes, and its table in shoal.toml."""

from __future__ import annotations

from typing import Any

from shoal.config import SETTINGS, of_spider
from shoal.core.plaintext import shown
from shoal.errors import ConfigError
from shoal.spider.spider import Spider

_OTHERWISE = ("name", "plugins")
"""Attributes that are no settings, though settings have these names."""


def settings_of(spider: type[Spider]) -> dict[str, Any]:
    """The settings that a spider sets as class attributes, and over them those of its own table in
    shoal.toml. Raises ConfigError for a name that a crawl cannot have."""
    if not isinstance(spider.name, str):
        raise ConfigError(f"{spider.__name__}.name must be text, not {shown(spider.name)}")
    found = {}
    for name in SETTINGS:
        # A method of that name is a handler, not a setting: `results` is a likely one.
        if name not in _OTHERWISE and hasattr(spider, name) and not callable(getattr(spider, name)):
            found[name] = getattr(spider, name)
    return found | of_spider(table_of(spider))


def table_of(spider: type[Spider]) -> str:
    """The name of its table [spider.NAME] in shoal.toml: that of the spider, without what its
    arguments add to it."""
    return spider.name.partition("{")[0].rstrip("-_.") or spider.__name__.lower()
