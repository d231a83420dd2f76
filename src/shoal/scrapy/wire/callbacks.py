"""Decides which methods of a spider a task may name, so that data never chooses other code.

A callback is a method of the spider's own classes, or of a kind of spider such as CrawlSpider, with
a leading underscore or without. What every spider has (`from_crawler`, `update_settings`, `close`,
...) is no callback: Scrapy itself calls it, with other arguments and at other times. Nor is the
method that logs accounts in, nor anything that is not a method: attributes, properties, classes.
"""

from __future__ import annotations

import inspect
from typing import Any

import scrapy

_OF_EVERY_SPIDER = (scrapy.Spider, *scrapy.Spider.__mro__[1:])
_CALLED_BY_SCRAPY = {name for cls in _OF_EVERY_SPIDER for name in vars(cls)} | {
    "closed",
    "start_requests",
    "setup_redis",
    "make_request_from_data",
    "spider_idle",
}
_CALLBACKS_OF_EVERY_SPIDER = {"parse", "_parse"}
_OURS = "shoal.scrapy."

LOGIN = "login"
"""The method that logs accounts in, if it takes a session. Many spiders have one that does not: for
Scrapy that one is a callback like any other."""


def is_callback(spider: type[scrapy.Spider], name: str) -> bool:
    """Whether a name is that of a method that may read a page. Runs none of the spider's code."""
    if name in _CALLED_BY_SCRAPY - _CALLBACKS_OF_EVERY_SPIDER or _is_special(name):
        return False
    for cls in spider.__mro__:
        if name in vars(cls):
            method = vars(cls)[name]
            if cls.__module__.startswith(_OURS) or not _is_method(method):
                return False
            return name != LOGIN or not takes_session(method)
    return False


def takes_session(method: Any) -> bool:
    """Whether a method called `login` is the one that logs accounts in."""
    function = getattr(method, "__func__", method)
    return callable(function) and "session" in inspect.signature(function).parameters


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _is_method(member: Any) -> bool:
    if isinstance(member, staticmethod | classmethod):
        return True
    # Functions, also those of compilers. A class is callable too, but not a method.
    return callable(member) and hasattr(type(member), "__get__") and not isinstance(member, type)
