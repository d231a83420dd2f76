"""Scrapy projects on Shoal: the scheduler, a worker inside Scrapy, and what replaces scrapy-redis.
Imports insight and all below; nothing below imports it: see core/plugins.py.

One line in its settings turns a project into a fleet:

    ADDONS = {"shoal.scrapy.Addon": 0}

Projects on scrapy-redis replace `scrapy_redis` by `shoal.scrapy` in their settings and imports.
See docs/guides/scrapy.md and docs/guides/scrapy-redis.md.
"""

from __future__ import annotations

from importlib.util import find_spec

from shoal.errors import MissingExtra

if find_spec("scrapy") is None:
    raise MissingExtra("a Scrapy project", "scrapy")

from shoal.scrapy.addon import Addon
from shoal.scrapy.connection import from_settings, get_redis, get_redis_from_settings
from shoal.scrapy.worker.items import ResultsPipeline

__all__ = ["Addon", "ResultsPipeline", "from_settings", "get_redis", "get_redis_from_settings"]
