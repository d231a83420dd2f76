"""The connection to Redis for feeds, items and stats, with the scripts of this package."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from scrapy.crawler import Crawler

from shoal.drivers.redis.scripts import Argument, Scripts
from shoal.errors import ConfigError, MissingExtra, WrongKeyType
from shoal.frontier.addresses import REDIS_SCHEMES, place_of
from shoal.scrapy.connection import DEFAULT_ADDRESS, address_of, scheme_of
from shoal.scrapy.worker.settings import settings_of

if TYPE_CHECKING:  # It needs an extra.
    from shoal.drivers.redis.link import RedisLink

_SCRIPTS = Scripts("shoal.scrapy")
_TAG = re.compile(r"[^{]*\{[^}]+\}")


class ScriptLink:
    """Runs commands, and the scripts of this package. Raises StorageError."""

    def __init__(self, address: str) -> None:
        self._redis = _link(address)
        self.shown = self._redis.shown

    async def command(self, *args: Argument) -> Any:
        """Run a plain command; its second word is the key."""
        try:
            return await self._redis.command(*args)
        except WrongKeyType as error:
            raise ConfigError(f"{error} (is the key somebody else's?)") from None

    async def run(self, script: str, keys: Sequence[str], *args: Argument) -> Any:
        """Run a script of this package. Scripts are short, so the text is sent with each call."""
        return await self.command(*_SCRIPTS[script].by_text(keys, *args))

    def beside(self, key: str, suffix: str) -> str:
        """Return the name of one of Shoal's keys that belongs to a key of the user's.

        In a cluster a script can only use keys of one hash slot, which the tag (the part in braces)
        determines if there is one: so the whole key of the user becomes the tag of Shoal's.
        """
        if not self._redis.is_cluster or _TAG.match(key):
            return f"{key}:{suffix}"
        if "}" in key:
            raise ConfigError(f"in a cluster, {key!r} needs a hash tag: {{name}}:rest")
        return f"{{{key}}}:{suffix}"

    async def close(self) -> None:
        """Close the connections."""
        await self._redis.close()


def address_for(crawler: Crawler) -> str:
    """Return the address of the Redis for feeds, items and stats: the one named by the settings of
    scrapy-redis; otherwise the frontier's; and if that is not Redis, the one on this machine."""
    if address := address_of(crawler.settings):
        return address
    settings = settings_of(crawler.settings, crawler.spidercls)
    state = place_of(settings.frontier, settings.state).state
    return state if scheme_of(state) in REDIS_SCHEMES else DEFAULT_ADDRESS


def _link(address: str) -> RedisLink:
    try:
        from shoal.drivers.redis.link import RedisLink, redis_address
    except ModuleNotFoundError as error:
        if error.name != "redis":
            raise
        raise MissingExtra("a feed, items or stats on Redis", "redis") from None
    return RedisLink(redis_address(address))
