"""A spider of the surrounding Scrapy project, as a target: `scrapy:shop`, with arguments after
it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import scrapy
from scrapy.crawler import Crawler
from scrapy.settings import Settings as ProjectSettings
from scrapy.utils.misc import load_object
from scrapy.utils.project import get_project_settings, inside_project

from shoal.config import variable_of
from shoal.errors import ConfigError
from shoal.fleet.target import SCRAPY
from shoal.scrapy.feeds.settings import feed_settings
from shoal.scrapy.spiders import RedisMixin
from shoal.scrapy.wire.callbacks import LOGIN, takes_session
from shoal.scrapy.worker.settings import crawl_name, values_of
from shoal.scrapy.worker.stand_in import what_logs_in
from shoal.spider.spider import Spider

_OF_SESSIONS = ("session", "accounts")
"""Settings that show that a crawl has accounts."""


class ScrapySpider(Spider):
    """Stands for a spider that runs inside Scrapy. Its processes bring its first requests."""

    seeds_itself = True


def spider_for(targets: Sequence[str]) -> type[Spider]:
    """Return a stand-in with the name and the settings of the project's spider. Raises
    ConfigError."""
    settings = project_settings()
    name, arguments = split(targets)
    spider = load(settings, name)
    # Making a crawler adds the spider's own settings (`custom_settings`).
    crawler = Crawler(spider, settings)
    settings = crawler.settings
    values = values_of(settings, spider)
    if issubclass(spider, RedisMixin):
        feed_settings(spider, settings)  # Errors are better reported here than by each process.
    values["name"] = crawl_name(values["name"], spider, arguments)
    if _has_sessions(spider, values):
        values |= what_logs_in(spider.from_crawler(crawler, **arguments))
    return type("ScrapySpider", (ScrapySpider,), values)


def _has_sessions(spider: type[scrapy.Spider], values: Mapping[str, Any]) -> bool:
    """Whether the spider's attributes for logins are meant for Shoal."""
    is_set = any(values.get(name) or variable_of(name) in os.environ for name in _OF_SESSIONS)
    return is_set or takes_session(getattr(spider, LOGIN, None))


def split(targets: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Return the spider's name and its arguments: `scrapy:shop category=books`. Raises
    ConfigError."""
    name = targets[0].removeprefix(SCRAPY)
    arguments = {}
    for text in targets[1:]:
        key, equals, value = text.partition("=")
        if not equals or not key.isidentifier():
            raise ConfigError(f"not an argument of a spider: {text!r} (write name=value)")
        arguments[key] = value
    return name, arguments


def project_settings() -> ProjectSettings:
    """Return the settings of the surrounding project. Raises ConfigError if there is none."""
    if not inside_project():
        raise ConfigError("there is no Scrapy project here (no scrapy.cfg)")
    return get_project_settings()


def load(settings: ProjectSettings, name: str) -> type[scrapy.Spider]:
    """Return the project's spider of this name. Raises ConfigError if there is none."""
    try:
        spiders: Any = load_object(settings["SPIDER_LOADER_CLASS"]).from_settings(settings)
    except Exception as error:  # The project's modules are imported here.
        raise ConfigError(f"the Scrapy project: {type(error).__name__}: {error}") from error
    if name not in spiders.list():
        known = ", ".join(sorted(spiders.list())) or "none"
        raise ConfigError(f"no spider {name!r} in this Scrapy project (there is: {known})")
    spider: type[scrapy.Spider] = spiders.load(name)
    return spider
