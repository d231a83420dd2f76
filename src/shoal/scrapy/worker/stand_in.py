"""A spider of Scrapy's as one of ours, for those who log accounts in and look for the proof."""

from __future__ import annotations

from typing import Any

import scrapy

from shoal.scrapy.wire.callbacks import LOGIN
from shoal.spider.spider import Spider


def stand_in(spider: scrapy.Spider) -> Spider:
    """One of ours that logs in as this one does. Raises ConfigError if `logged_in` is no CSS."""
    made: type[Spider] = type(type(spider).__name__, (Spider,), what_logs_in(spider))
    return made()


def what_logs_in(spider: scrapy.Spider) -> dict[str, Any]:
    """What a spider says of logins, as attributes of a class."""
    said: dict[str, Any] = {}
    for name in (LOGIN, "logged_in", "login_url"):
        value = getattr(spider, name, None)
        if isinstance(value, str):
            said[name] = value
        elif callable(value):
            said[name] = staticmethod(value)
    return said
