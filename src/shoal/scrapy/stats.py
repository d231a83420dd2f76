"""The stats collector of scrapy-redis: stats of the whole fleet in a hash on Redis."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from datetime import datetime
from functools import cached_property
from typing import Any

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.statscollectors import MemoryStatsCollector

from shoal.errors import ShoalError
from shoal.runtime.patience import patiently
from shoal.scrapy import defaults
from shoal.scrapy.link import ScriptLink, address_for
from shoal.scrapy.reading import filled, switch

SEND_EVERY_S = 5.0
GONE_S = 60.0
"""A process that has sent nothing for this long is gone."""
CLOSING_S = 10.0

log = logging.getLogger("shoal")


class RedisStatsCollector(MemoryStatsCollector):
    """Counts in memory, as Scrapy does, and adds the counts to the hash STATS_KEY every few
    seconds.

    `get_value` and `get_stats` return the stats of this process alone; the hash has those of the
    fleet.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._crawler = crawler  # Scrapy 2.13 does not keep it.
        self._name = str(crawler.spidercls.name)
        self._sender = secrets.token_hex(8)
        self._sendings = 0
        self._added: dict[str, tuple[Any, Any]] = {}
        self._changed: dict[tuple[str, str], Any] = {}
        self._unsent: list[str] = []
        """Changes that were sent and are not known to have arrived."""
        self._sending: asyncio.Task[None] | None = None
        crawler.signals.connect(self._stop, signal=signals.engine_stopped)

    def inc_value(
        self, key: str, count: int = 1, start: int = 0, spider: Spider | None = None
    ) -> None:
        """Add to a stat. The hash has the sum over all processes."""
        super().inc_value(key, count, start)
        self._added[key] = (self._added.get(key, (0,))[0] + count, start)

    def set_value(self, key: str, value: Any, spider: Spider | None = None) -> None:
        """Set a stat. In the hash, the last process wins."""
        super().set_value(key, value)
        self._set(key, value)

    def set_stats(self, stats: dict[str, Any], spider: Spider | None = None) -> None:
        """Set all stats of this process."""
        super().set_stats(stats)
        for key, value in stats.items():
            self._set(key, value)

    def max_value(self, key: str, value: Any, spider: Spider | None = None) -> None:
        """Keep the largest value of a stat. The hash has the largest of all processes."""
        super().max_value(key, value)
        self._changed["max", key] = self._stats[key]

    def min_value(self, key: str, value: Any, spider: Spider | None = None) -> None:
        """Keep the smallest value of a stat. The hash has the smallest of all processes."""
        super().min_value(key, value)
        self._changed["min", key] = self._stats[key]

    def open_spider(self, spider: Spider | None = None) -> None:
        """Called by Scrapy, with or without the spider."""
        super().open_spider(spider)
        self._sending = asyncio.create_task(self._send_forever())

    @cached_property
    def _link(self) -> ScriptLink:
        return ScriptLink(address_for(self._crawler))

    def _set(self, key: str, value: Any) -> None:
        self._added.pop(key, None)
        self._changed["set", key] = value

    async def _send_forever(self) -> None:
        try:
            while True:
                await patiently("hash of stats", self._send)
                await asyncio.sleep(SEND_EVERY_S)
        except ShoalError as error:
            log.error("stats are not sent to Redis: %s", error)

    async def _stop(self) -> None:
        """Send the last stats: the engine has stopped."""
        if self._sending is None:
            return
        self._sending.cancel()
        await asyncio.gather(self._sending, return_exceptions=True)
        try:
            async with asyncio.timeout(CLOSING_S):
                while self._unsent or self._changed or self._added:
                    await patiently("hash of stats", self._send)
        except (ShoalError, TimeoutError) as error:
            log.error("the last stats were not sent to Redis: %s", error or "no answer")
        await self._link.close()

    async def _send(self) -> None:
        """Send new changes; or send those that got no answer once more, under their old number."""
        if not self._unsent:
            self._sendings += 1
            self._unsent = self._changes()
        pattern = self._crawler.settings.get("STATS_KEY") or defaults.STATS_KEY
        key = filled("STATS_KEY", pattern, {"spider": self._name})
        starts_over = int(not switch(self._crawler.settings, "SCHEDULER_PERSIST"))
        await self._link.run(
            "stats_send",
            [key, self._link.beside(key, "senders")],
            self._sender,
            self._sendings,
            round(GONE_S * 1000),
            starts_over,
            *self._unsent,
        )
        self._unsent = []

    def _changes(self) -> list[str]:
        """Return what has changed since the last call, as four strings per change."""
        changes: list[str] = []
        for (how, key), value in self._changed.items():
            words = _written(value)
            changes += (how if _is_number(words) else "set", key, words, "")
        for key, (count, first) in self._added.items():
            changes += ("add", key, _written(count), _written(first))
        self._changed, self._added = {}, {}
        return changes


def _written(value: Any) -> str:
    """Return a value as the hash keeps it: times as seconds, as scrapy-redis does it."""
    if isinstance(value, datetime):
        value = value.timestamp()
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _is_number(words: str) -> bool:
    try:
        float(words)
    except ValueError:
        return False
    return True
