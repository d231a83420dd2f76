"""Makes a Shoal spider of a Scrapy spider, for code that logs accounts in and checks the proof."""

from __future__ import annotations

from typing import Any

import scrapy

from shoal.scrapy.wire.callbacks import LOGIN
from shoal.spider.spider import Spider


def stand_in(spider: scrapy.Spider) -> Spider:
    """Return a Shoal spider that logs in as this one does. Raises ConfigError if `logged_in` is no
    CSS."""
    made: type[Spider] = type(type(spider).__name__, (Spider,), what_logs_in(spider))
    return made()


def what_logs_in(spider: scrapy.Spider) -> dict[str, Any]:
    """Return a spider's attributes for logins, as attributes of a class."""
    said: dict[str, Any] = {}
    for name in (LOGIN, "logged_in", "login_url"):
        value = getattr(spider, name, None)
        if isinstance(value, str):
            said[name] = value
        elif callable(value):
            said[name] = staticmethod(value)
    return said
