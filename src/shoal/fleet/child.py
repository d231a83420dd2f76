"""The process that a fleet starts: one worker.

It gets its order as runtime/orders.py says. When the parent is gone, the worker drains.
"""

from __future__ import annotations

import asyncio
import signal

import msgspec

from shoal.archive import archive_at
from shoal.config import Settings
from shoal.core.plugins import plugin
from shoal.fleet import target
from shoal.fleet.target import is_scrapy
from shoal.frontier import open_frontier
from shoal.results import open_results
from shoal.runtime import logs
from shoal.runtime.eventloop import run
from shoal.runtime.memory import settle_in
from shoal.runtime.orders import obey, when_parent_is_gone
from shoal.runtime.watchdog import watched
from shoal.worker.spider_visits import spider_worker
from shoal.worker.worker import Worker


class WorkerOrder(msgspec.Struct):
    """What a worker process is to do."""

    worker: str
    crawl: str
    targets: list[str]
    settings: Settings
    until_finished: bool = True
    brings_seeds: bool = True
    """Whether it queues the spider's first requests, if that is not done for it."""


def main() -> int:
    """Do what the order on stdin says."""
    return obey(WorkerOrder, _obey)


def _obey(order: WorkerOrder) -> str:
    for_scrapy = is_scrapy(order.targets)
    logs.configure(json_lines=order.settings.json_logs, only_ours=for_scrapy)
    settle_in()
    if for_scrapy:
        plugin("shoal.workers", "scrapy")(order)
    else:
        run(_work(order))
    return ""


async def _work(order: WorkerOrder) -> None:
    settings = order.settings
    frontier = open_frontier(settings.frontier)
    results = open_results(settings.results)
    try:
        async with archive_at(settings.archive, settings.archive_format) as archive:
            worker = spider_worker(
                order.worker,
                order.crawl,
                target.create(target.load(order.targets)),
                frontier,
                results,
                settings,
                archive=archive,
                until_finished=order.until_finished,
                watch=watched,
            )
            await _run(worker)
    finally:
        await frontier.close()
        await results.close()


async def _run(worker: Worker) -> None:
    """Let it work until it ends; a signal, or the end of the parent, drains it."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.drain)
    call_off = when_parent_is_gone(worker.drain)
    try:
        await worker.run()
    finally:
        call_off()
