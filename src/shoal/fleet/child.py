"""The process that a fleet starts: one worker.

Its first line on stdin says what to do. Stdin stays open after that: when it ends, the parent is
gone, and the worker drains. (An address may hold a password, so nothing goes through the command
line, where `ps` would show it.) Stdout is for one thing: why it gave up, if it did. All else that
it or its spider says goes to stderr.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from typing import TextIO

import msgspec

from shoal.archive import archive_at
from shoal.config import Settings
from shoal.core.plugins import plugin
from shoal.errors import ShoalError
from shoal.fleet import target
from shoal.fleet.target import is_scrapy
from shoal.frontier import open_frontier
from shoal.results import open_results
from shoal.runtime import logs
from shoal.runtime.eventloop import run
from shoal.runtime.memory import settle_in
from shoal.runtime.watchdog import watched
from shoal.worker.spider_visits import spider_worker
from shoal.worker.worker import Worker

GAVE_UP = 69
"""The exit code of a process for which starting another one would not help."""


class Order(msgspec.Struct):
    """What a worker process is to do."""

    worker: str
    crawl: str
    targets: list[str]
    settings: Settings
    until_finished: bool = True
    plants: bool = True
    """Whether it queues the spider's first requests, if that is not done for it."""


def main() -> int:
    """Do what the order on stdin says."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which tells us.
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=Order)
    for_scrapy = is_scrapy(order.targets)
    logs.configure(json_lines=order.settings.json_logs, only_ours=for_scrapy)
    last_words = take_stdout()
    settle_in()
    try:
        if for_scrapy:
            plugin("shoal.workers", "scrapy")(order)
        else:
            run(_work(order))
    except ShoalError as error:
        with suppress(OSError), last_words:  # The parent may be gone.
            last_words.write(str(error))
        return GAVE_UP
    return 0


def take_stdout() -> TextIO:
    """The pipe to the parent. What a spider prints from now on is not for it."""
    own = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace")
    os.dup2(2, 1)
    return own


async def _work(order: Order) -> None:
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
    """Let it work until it ends, or is told to by a signal or by the end of stdin."""
    loop = asyncio.get_running_loop()
    stdin = sys.stdin.fileno()

    def orphaned() -> None:
        loop.remove_reader(stdin)  # The end of a file is readable for ever.
        worker.drain()

    loop.add_signal_handler(signal.SIGTERM, worker.drain)
    loop.add_reader(stdin, orphaned)
    try:
        await worker.run()
    finally:
        loop.remove_reader(stdin)


if __name__ == "__main__":
    sys.exit(main())
