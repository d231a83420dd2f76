"""The process that a fleet starts: one worker.

Its first line on stdin says what to do. Stdin stays open after that: when it ends, the parent is
gone, and the worker drains. (An address may hold a password, so nothing goes through the command
line, where `ps` would show it.)
"""

from __future__ import annotations

import asyncio
import signal
import sys

import msgspec

from shoal import logs, target
from shoal.config import Settings
from shoal.errors import ShoalError
from shoal.eventloop import run
from shoal.frontier import open_frontier
from shoal.results import open_results
from shoal.worker import Worker

GAVE_UP = 69
"""The exit code of a worker for which starting another one would not help."""


class Order(msgspec.Struct):
    """What a worker process is to do."""

    worker: str
    crawl: str
    targets: list[str]
    settings: Settings
    until_finished: bool


def main() -> int:
    """Do what the order on stdin says."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which tells us.
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=Order)
    logs.configure(json_lines=order.settings.json_logs)
    try:
        run(_work(order))
    except ShoalError as error:
        sys.stderr.write(f"shoal: {error}\n")
        return GAVE_UP
    return 0


async def _work(order: Order) -> None:
    frontier = open_frontier(order.settings.frontier)
    results = open_results(order.settings.results)
    worker = Worker(
        order.worker,
        order.crawl,
        target.load(order.targets)(),
        frontier,
        results,
        order.settings,
        until_finished=order.until_finished,
    )
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, worker.drain)
    loop.add_reader(sys.stdin.fileno(), worker.drain)  # Readable means: end of file.
    try:
        await worker.run()
    finally:
        loop.remove_reader(sys.stdin.fileno())
        await frontier.close()
        await results.close()


if __name__ == "__main__":
    sys.exit(main())
