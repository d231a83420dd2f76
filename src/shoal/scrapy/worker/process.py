"""A worker process of `shoal crawl scrapy:SPIDER`: Scrapy with Shoal's scheduler in it."""

from __future__ import annotations

import asyncio

from scrapy.crawler import CrawlerProcess
from scrapy.settings import SETTINGS_PRIORITIES, Settings
from twisted.python.failure import Failure

from shoal.fleet.child import WorkerOrder
from shoal.runtime.orders import when_parent_is_gone
from shoal.scrapy.addon import SCHEDULER
from shoal.scrapy.worker.member import failure_of
from shoal.scrapy.worker.project import project_settings, split
from shoal.scrapy.worker.settings import MEMBERSHIP, Membership


def work(order: WorkerOrder) -> None:
    """Run the spider until the crawl is over, or until a signal or the end of stdin stops it."""
    name, arguments = split(order.targets)
    process = CrawlerProcess(_settings_for(order))
    crawler = process.create_crawler(name)
    failures: list[BaseException] = []

    def failed(failure: Failure) -> None:
        failures.append(failure.value or RuntimeError(str(failure)))

    process.crawl(crawler, **arguments).addErrback(failed)
    loop = asyncio.get_event_loop_policy().get_event_loop()
    loop.call_soon(when_parent_is_gone, process.stop)
    process.start()
    if (error := failures[0] if failures else failure_of(crawler)) is not None:
        raise error


def _settings_for(order: WorkerOrder) -> Settings:
    settings = project_settings()
    settings.set("SCHEDULER", SCHEDULER, priority="cmdline")
    membership = Membership(order.settings, order.crawl, order.brings_seeds, order.until_finished)
    settings.set(MEMBERSHIP, membership, priority="cmdline")
    if (settings.getpriority("LOG_LEVEL") or 0) <= SETTINGS_PRIORITIES["default"]:
        settings.set("LOG_LEVEL", "WARNING")  # Beside the progress line, the rest is noise.
    return settings
