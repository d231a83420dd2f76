"""The settings of a feed, by the names that scrapy-redis gave them."""

from __future__ import annotations

import codecs
from typing import Any, NamedTuple

from scrapy.settings import BaseSettings

from shoal.errors import ConfigError
from shoal.scrapy import defaults
from shoal.scrapy.reading import as_whole_number, filled, whole_number


class FeedSettings(NamedTuple):
    """The keys with messages, how many to take at a time, and when to stop waiting for them."""

    keys: list[str]
    batch: int
    encoding: str
    max_idle_s: int


def feed_settings(spider: Any, settings: BaseSettings) -> FeedSettings:
    """Return the feed settings of a spider, or of a class of spiders. Raises ConfigError."""
    encoding = spider.redis_encoding or settings.get("REDIS_ENCODING", defaults.REDIS_ENCODING)
    try:
        codecs.lookup(encoding)
    except (LookupError, TypeError):
        raise ConfigError(f"redis_encoding = {encoding!r}: no encoding") from None
    max_idle = spider.max_idle_time
    if max_idle is None:
        name = "MAX_IDLE_TIME_BEFORE_CLOSE"
        idle_s = whole_number(settings, name, defaults.MAX_IDLE_TIME)
    else:
        idle_s = as_whole_number("max_idle_time", max_idle)
    return FeedSettings(_keys(spider, settings), _batch(spider, settings), encoding, idle_s)


def _keys(spider: Any, settings: BaseSettings) -> list[str]:
    """Return the keys of a spider's feeds, each once, in order."""
    pattern = spider.redis_key or settings.get("REDIS_START_URLS_KEY", defaults.START_URLS_KEY)
    try:
        patterns = [pattern] if isinstance(pattern, str) else list(pattern)
    except TypeError:
        raise ConfigError(f"redis_key = {pattern!r}: not a key, and no list of keys") from None
    named = {"name": spider.name}
    keys = list(dict.fromkeys(filled("redis_key", key, named) for key in patterns))
    if not keys or not all(key.strip() for key in keys):
        raise ConfigError(f"the spider {spider.name!r} has an empty redis_key")
    return keys


def _batch(spider: Any, settings: BaseSettings) -> int:
    """Return how many messages to take at a time: by default as many as requests may run at
    once."""
    return (
        as_whole_number("redis_batch_size", spider.redis_batch_size or 0)
        or whole_number(settings, "REDIS_START_URLS_BATCH_SIZE")
        or whole_number(settings, "CONCURRENT_REQUESTS")
    )
