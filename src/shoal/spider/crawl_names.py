"""The name of a crawl, with the arguments of its spider: `name = "shop-{category}"`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from enum import Enum
from typing import Any

from msgspec.structs import replace

from shoal.config import Settings
from shoal.core.near_names import no_such
from shoal.errors import ConfigError
from shoal.spider.arguments import arguments_of, as_json, read_arguments
from shoal.spider.spider import Spider

_PLACE = re.compile(r"\{([^{}]*)\}")
_fits = re.compile("[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}").fullmatch


def settings_with(spider: type[Spider], settings: Settings, given: Mapping[str, Any]) -> Settings:
    """The settings of a crawl with these arguments: they are part of its rules, and its name may
    contain them. Raises ConfigError."""
    args = as_json(spider, given)
    name = settings.name
    if name is None and "{" in spider.name:
        name = name_with(spider, args)
    return replace(settings, name=name, rules=replace(settings.rules, args=args))


def name_with(spider: type[Spider], args: Mapping[str, Any]) -> str:
    """The spider's name, filled in with these arguments. Raises ConfigError."""
    check_places(spider)
    known, values = arguments_of(spider), read_arguments(spider, args)

    def filled(place: re.Match[str]) -> str:
        argument = known[place[1]]
        text = _in_a_name(values.get(argument.name, argument.default))
        if text is None or not _fits(text):
            raise ConfigError(
                f"{spider.__name__}.name: {argument.name}={text!r:.100} cannot be part of a name,"
                " which has letters, digits, and - _ . (--name gives the crawl another name)"
            )
        return text

    return _PLACE.sub(filled, spider.name)


def check_places(spider: type[Spider]) -> None:
    """Raises ConfigError if the spider's name has something in braces that is no argument."""
    known = arguments_of(spider)
    for name in _PLACE.findall(spider.name):
        if name not in known:
            raise ConfigError(f"{spider.__name__}.name: {no_such('argument', name, known)}")


def _in_a_name(value: Any) -> str | None:
    match value:
        case bool():
            return "yes" if value else "no"
        case Enum():
            return str(value.value)
        case str() | int() | float() | date():
            return str(value)
    return None
