"""The item pipeline of scrapy-redis: pushes items to a list on Redis for projects that read them
there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import cached_property, partial
from typing import Any, Self

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings
from scrapy.utils.serialize import ScrapyJSONEncoder

from shoal.runtime.patience import patiently
from shoal.scrapy import connection, defaults
from shoal.scrapy.link import ScriptLink, address_for
from shoal.scrapy.reading import filled, loaded
from shoal.scrapy.worker.items import ResultsPipeline

Serialize = Callable[[Any], str | bytes]

default_serialize: Serialize = ScrapyJSONEncoder().encode


__all__ = ["RedisPipeline", "ResultsPipeline", "default_serialize"]


class RedisPipeline:
    """Pushes items to the right end of the list REDIS_ITEMS_KEY.

    `process_item` returns when the item is in Redis. A Redis that is away is waited for; items
    whose push got no answer are pushed again, so a reader may see them twice.
    """

    crawler: Crawler

    def __init__(
        self,
        server: Any = None,
        key: str = defaults.PIPELINE_KEY,
        serialize_func: Serialize = default_serialize,
    ) -> None:
        """`key` may contain the spider's name: `%(spider)s:items`."""
        if server is not None:
            self.server = server
        self.key = key
        self.serialize = serialize_func
        self._pushers: dict[str, Pusher] = {}

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Called by Scrapy to make the pipeline."""
        pipeline = cls.from_settings(crawler.settings)
        pipeline.crawler = crawler
        crawler.signals.connect(pipeline._close, signal=signals.spider_closed)
        return pipeline

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        """Return the pipeline that the settings describe."""
        params: dict[str, Any] = {"server": None}
        if settings.get("REDIS_ITEMS_KEY"):
            params["key"] = settings["REDIS_ITEMS_KEY"]
        if settings.get("REDIS_ITEMS_SERIALIZER"):
            params["serialize_func"] = loaded(settings, "REDIS_ITEMS_SERIALIZER")
        return cls(**params)

    @cached_property
    def server(self) -> Any:
        """A blocking client for a project's own subclasses."""
        return connection.from_settings(self.crawler.settings)

    async def process_item(self, item: Any, spider: Spider | None = None) -> Any:
        """Called by Scrapy, with or without the spider."""
        spider = spider or self.crawler.spider
        if hasattr(self, "_process_item"):  # A subclass has its own: call it in a thread.
            return await asyncio.to_thread(self._process_item, item, spider)
        key = self.item_key(item, spider)
        data = self.serialize(item)
        await self._pusher(key).push(data if isinstance(data, bytes) else data.encode())
        return item

    def item_key(self, item: Any, spider: Any) -> str:
        """Return the key of the list for this item. Override it to use several lists."""
        return filled("REDIS_ITEMS_KEY", self.key, {"spider": spider.name})

    @cached_property
    def _link(self) -> ScriptLink:
        return ScriptLink(address_for(self.crawler))

    def _pusher(self, key: str) -> Pusher:
        if key not in self._pushers:
            self._pushers[key] = Pusher(partial(self._link.command, "RPUSH", key))
        return self._pushers[key]

    async def _close(self) -> None:
        if self._pushers:
            await self._link.close()


class Pusher:
    """Pushes to one list. Items that arrive while a push is under way go together in the next
    one."""

    def __init__(self, rpush: Callable[..., Awaitable[Any]]) -> None:
        self._rpush = rpush
        self._waiting: list[tuple[bytes, asyncio.Future[None]]] = []
        self._pushing: asyncio.Task[None] | None = None

    async def push(self, data: bytes) -> None:
        """Push data, and return when it is in Redis. Raises ShoalError if it never will be."""
        pushed = asyncio.get_running_loop().create_future()
        self._waiting.append((data, pushed))
        if self._pushing is None:
            self._pushing = asyncio.create_task(self._push_all())
        await pushed

    async def _push_all(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                await patiently("list of items", partial(self._rpush, *(data for data, _ in batch)))
            except Exception as error:
                for _, pushed in batch:
                    if not pushed.done():
                        pushed.set_exception(error)
            else:
                for _, pushed in batch:
                    if not pushed.done():
                        pushed.set_result(None)
        self._pushing = None
