"""Chooses what works on a crawl here: a fleet of processes, or one worker in this process."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

from msgspec.structs import replace

from shoal.config import Settings
from shoal.fleet.child import WorkerOrder, worker_for
from shoal.fleet.fleet import Fleet
from shoal.fleet.spider_maker import SpiderMaker
from shoal.fleet.target import is_scrapy
from shoal.results.port import Results
from shoal.runtime.process import worker_name
from shoal.worker.assignment import Stores
from shoal.worker.worker import Worker


def needs_processes(targets: Sequence[str], settings: Settings) -> bool:
    """Whether one worker in this process is not enough. Scrapy needs a process of its own."""
    return settings.workers > 1 or is_scrapy(targets)


def workers_for(
    order: WorkerOrder,
    stores: Stores[Results],
    new_maker: Callable[[], SpiderMaker],
    *,
    watch: Callable[[float], AbstractContextManager[object]] = nullcontext,
) -> Fleet | Worker:
    """A fleet of processes that load the order's targets. If it has none: one worker in this
    process, with a spider from `new_maker`, under the watchdog `watch`."""
    if order.targets:
        return Fleet(order, stores.frontier)
    named = replace(order, worker=worker_name(os.getpid()))
    return worker_for(named, stores, new_maker(), watch=watch)
