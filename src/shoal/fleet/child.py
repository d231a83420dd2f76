"""The process that a fleet starts: one worker.

It gets its order as described in runtime/orders.py. When the parent is gone, the worker drains.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager

import msgspec

from shoal.config import Settings
from shoal.core.plugins import plugin
from shoal.exits.own import own_exits
from shoal.fleet import target
from shoal.fleet.life_hooks import Closing
from shoal.fleet.published import publishing_for
from shoal.fleet.spider_maker import SpiderMaker
from shoal.fleet.spider_version import spider_version
from shoal.fleet.stores import stores_at
from shoal.fleet.summary import Summary, summary_of
from shoal.fleet.target import is_scrapy
from shoal.frontier.patient import patient
from shoal.frontier.values import Stats
from shoal.results.port import Results
from shoal.runtime import logs
from shoal.runtime.eventloop import run
from shoal.runtime.memory import settle_in
from shoal.runtime.orders import obey, when_parent_is_gone
from shoal.runtime.watchdog import watched
from shoal.sessions.own import own_sessions
from shoal.worker.assignment import Assignment, Stores
from shoal.worker.meter import Did
from shoal.worker.visits.spider_visits import spider_worker
from shoal.worker.worker import Worker


class WorkerOrder(msgspec.Struct):
    """What a worker is to do."""

    crawl: str
    targets: list[str]
    """The targets by which the process loads its spider."""
    settings: Settings
    until_finished: bool = True
    brings_seeds: bool = True
    """Whether the worker queues the spider's first requests, if nothing else does that."""
    closes: bool = False
    """Whether the worker calls the hook `closed`. If not, the process that runs the crawl does."""
    worker: str = ""
    """The worker's name, filled in by the code that starts it."""


def main() -> int:
    """Carry out the order on stdin."""
    return obey(WorkerOrder, _obey)


def _obey(order: WorkerOrder) -> str:
    """Run the worker and return its last words: its `Did`. Scrapy keeps its own counts and has
    none."""
    for_scrapy = is_scrapy(order.targets)
    logs.configure(
        json_lines=order.settings.json_logs,
        only_ours=for_scrapy,
        crawl=order.crawl,
        worker=order.worker,
    )
    settle_in()
    if for_scrapy:
        plugin("shoal.workers", "scrapy")(order)
        return ""
    return msgspec.json.encode(run(_work(order))).decode()


def worker_for(
    order: WorkerOrder,
    stores: Stores[Results],
    maker: SpiderMaker,
    *,
    watch: Callable[[float], AbstractContextManager[object]],
) -> Worker:
    """The worker that an order asks for, in this process."""
    assignment = Assignment(
        order.worker,
        order.crawl,
        stores,
        order.settings.concurrency,
        order.until_finished,
        exits=own_exits(order.settings, stores.frontier),
        sessions=own_sessions(order.settings, stores.frontier),
        publishing=publishing_for(order.settings, order.crawl, stores.frontier),
        on_over=_closing(stores, maker).tried if order.closes else None,
        spider_version=spider_version(maker.spider_class, order.settings.spider_version),
    )
    return spider_worker(assignment, maker, order.settings, watch=watch)


def _closing(stores: Stores[Results], maker: SpiderMaker) -> Closing:
    async def summarize(stats: Stats) -> Summary:
        until, since = stats.finished_at or 0.0, stats.started_at or stats.created_at
        return await summary_of(stores, stats, max(until - since, 0.0))

    return Closing(patient(stores.frontier), maker, summarize)


async def _work(order: WorkerOrder) -> Did:
    settings = order.settings
    async with stores_at(settings, check=False) as stores:  # The parent has checked them.
        maker = SpiderMaker(target.load(order.targets), settings.plugins, settings.rules.args)
        worker = worker_for(order, stores, maker, watch=watched)
        await _run(worker)
        return worker.did


async def _run(worker: Worker) -> None:
    """Run the worker to its end. SIGTERM, or the end of the parent, drains it."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.drain)
    call_off = when_parent_is_gone(worker.drain)
    try:
        await worker.run()
    finally:
        call_off()
