"""Finds attributes of a spider that look like misspelt settings.

An attribute that a method of the spider reads belongs to the spider, whatever its name.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from types import CodeType, FunctionType
from typing import Any

from shoal.config import SETTINGS
from shoal.core.near_names import nearest
from shoal.spider.spider import Spider

NEAR = 0.8
"""How similar two names must be for one to count as a misspelling of the other."""

OF_SCRAPY = {
    "allowed_domains": "allowed_hosts",
    "custom_settings": "an attribute for each setting",
    "download_delay": "rate",
    "handle_httpstatus_list": "accept",
}
"""Attributes of Scrapy's spiders, and what to write instead."""
START_OF_SCRAPY = "start_requests"
"""A method that Scrapy calls and Shoal does not."""

KNOWN = frozenset({*SETTINGS, *vars(Spider), *Spider.__annotations__})
"""All names that mean something to Shoal, so none of them is a mistake."""
_MEANT = sorted(name for name in KNOWN if not name.startswith("_"))


def mistaken_attributes(spider: type[Spider]) -> dict[str, str]:
    """The attributes that nobody reads, each with the name that was probably meant."""
    found = {}
    for name in _own_attributes(spider):
        meant = OF_SCRAPY.get(name) or nearest(name, _MEANT, NEAR)
        if meant is not None:
            found[name] = meant
    if hasattr(spider, START_OF_SCRAPY) and spider.start is Spider.start:
        found[START_OF_SCRAPY] = Spider.start.__name__
    return found


def mistaken_line(name: str, meant: str) -> str:
    """The message for a mistake."""
    if name == START_OF_SCRAPY:
        return f"{name} is Scrapy's, and is never called; did you mean {meant}?"
    return f"{name} is not a setting; did you mean {meant}?"


def _own_attributes(spider: type[Spider]) -> Iterator[str]:
    """The attributes that the user's classes set and that none of their methods reads."""
    own = [cls for cls in spider.__mro__ if issubclass(cls, Spider) and cls is not Spider]
    read = {name for cls in own for thing in vars(cls).values() for name in _names_in(thing)}
    for cls in own:
        for name, value in vars(cls).items():
            if name in KNOWN or name in read or name.startswith("_") or callable(value):
                continue
            if not isinstance(value, property | cached_property | classmethod):
                yield name


def _names_in(thing: Any) -> Iterator[str]:
    """The names in the code of a method, including functions inside it."""
    codes = [thing.__code__] if isinstance(thing, FunctionType) else []
    while codes:
        code = codes.pop()
        yield from code.co_names
        codes += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
