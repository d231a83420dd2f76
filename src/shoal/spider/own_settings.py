"""The settings of a spider itself: its class attributes, and its table in shoal.toml."""

from __future__ import annotations

from typing import Any

from shoal.config import SETTINGS, of_spider
from shoal.core.plaintext import shown
from shoal.errors import ConfigError
from shoal.spider.spider import Spider

_OTHERWISE = ("name", "plugins")
"""Attributes that are not settings, although settings have the same names."""


def settings_of(spider: type[Spider]) -> dict[str, Any]:
    """The settings in a spider's class attributes, overridden by those of its table in shoal.toml.
    Raises ConfigError."""
    if not isinstance(spider.name, str):
        raise ConfigError(f"{spider.__name__}.name must be text, not {shown(spider.name)}")
    found = {}
    for name in SETTINGS:
        # A method with that name is a handler, not a setting: for instance `results`.
        if name not in _OTHERWISE and hasattr(spider, name) and not callable(getattr(spider, name)):
            found[name] = getattr(spider, name)
    return found | of_spider(table_of(spider))


def table_of(spider: type[Spider]) -> str:
    """The NAME of its table [spider.NAME] in shoal.toml: the spider's name without arguments."""
    return spider.name.partition("{")[0].rstrip("-_.") or spider.__name__.lower()
