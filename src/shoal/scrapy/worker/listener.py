"""The listener to Scrapy's signals: what happens to requests in the engine, and to their items."""

from __future__ import annotations

import logging
import time
from collections.abc import Coroutine
from typing import Any

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from twisted.python.failure import Failure

from shoal.core.records import RejectedItem
from shoal.core.urls import FINGERPRINT_BYTES
from shoal.results.port import Batch, Results
from shoal.runtime.patience import patiently
from shoal.scrapy.worker.items import ItemStore
from shoal.scrapy.worker.verdicts import Life
from shoal.scrapy.worker.visits import ScrapyVisits

log = logging.getLogger("shoal")

NO_PAGE = b"\0" * FINGERPRINT_BYTES
"""Stands for the page of an item that start() yielded."""


class Listener:
    """Records in a request's life what happens to it and to its items."""

    def __init__(
        self, crawl: str, visits: ScrapyVisits, results: Results | None, items: ItemStore
    ) -> None:
        self._crawl = crawl
        self._visits = visits
        self._items = items
        self._results = results

    def connect(self, crawler: Crawler) -> None:
        """Listen from now on. Scrapy keeps only weak references to its listeners."""
        for handler, signal in (
            (self._sent, signals.request_reached_downloader),
            (self._downloaded, signals.response_downloaded),
            (self._left, signals.request_left_downloader),
            (self._scraped, signals.item_scraped),
            (self._failed, signals.item_error),
            (self._failed, signals.spider_error),
        ):
            crawler.signals.connect(handler, signal=signal)

    def _sent(self, request: Request) -> None:
        if (life := self._visits.life_of(request)) is not None:
            life.sent = True

    def _downloaded(self, response: Response, request: Request) -> None:
        """Note an answer as it arrives: a middleware may swallow it to retry or to redirect."""
        if (life := self._visits.life_of(request)) is None:
            return
        life.note(response)
        life.latency_s = request.meta.get("download_latency", 0.0)

    def _left(self, request: Request) -> None:
        self._visits.left_downloader(request)

    def _failed(self, failure: Failure, response: Response | Failure | None) -> None:
        """Note what a callback, an errback or a pipeline raised: the page is not done."""
        if (life := self._visits.life_behind(response)) is not None:
            life.error = failure.value

    def _scraped(
        self, item: Any, response: Response | Failure | None
    ) -> Coroutine[Any, Any, None] | None:
        """Note an item that has come through all pipelines. Scrapy awaits what is returned."""
        life = self._visits.life_behind(response)
        if self._results is not None and life is None:
            return self._save_alone(self._results, item)
        if life is not None:
            self._keep(item, life)
        return None

    def _keep(self, item: Any, life: Life) -> None:
        """Count an item and, if there are results, add it to the life's items."""
        row = None
        if self._results is not None:
            url, fingerprint = life.lease.task.url, life.lease.fingerprint
            at = life.lease.now()
            row = self._items.row(item, url=url, fingerprint=fingerprint, scraped_at=at)
        if isinstance(row, RejectedItem):
            log.warning("an item of %s cannot be stored: %s", row.url, row.reason)
            life.rejected.append(row)
            return
        life.scraped += 1
        if row is not None:
            life.items.append(row)

    async def _save_alone(self, results: Results, item: Any) -> None:
        """Save an item of start(), which no page led to."""
        row = self._items.row(item, url="", fingerprint=NO_PAGE, scraped_at=time.time())
        batch = Batch(rejected=[row]) if isinstance(row, RejectedItem) else Batch(items=[row])
        await patiently("results store", lambda: results.save(self._crawl, batch))
