"""A process that brings the seeds of one run into the frontier.

The user's code runs here, apart from the coordinator: whatever it does, others go on. The order
comes on stdin; that it ends means that the coordinator is gone. What is planted already when a
planter dies is a duplicate for the next one.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec

from shoal import logs, target
from shoal.child import GAVE_UP, take_stdout
from shoal.config import Rules, Settings
from shoal.coordinator.runs import Run, settings_for
from shoal.coordinator.sowing import Places, Sowing
from shoal.crawl import open_stores, run_note
from shoal.errors import ConfigError, ShoalError
from shoal.eventloop import run as run_loop
from shoal.frontier.port import Frontier
from shoal.recrawl import check_previous
from shoal.results.port import Results
from shoal.seeding import plant
from shoal.spider import Spider, settings_of

log = logging.getLogger("shoal")


class Order(msgspec.Struct):
    """What a planter is to do."""

    run: Run
    options: dict[str, Any]
    """What the coordinator was told on its command line."""
    only_check: bool = False
    """Only look whether the spider can be loaded."""


class Answer(msgspec.Struct):
    """What it says on stdout when it ends well."""

    spider: dict[str, Any] = {}
    """The settings of the spider's class."""


def main() -> int:
    """Do what the order on stdin says."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the coordinator, which ends us.
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=Order)
    threading.Thread(target=_end_with_the_coordinator, daemon=True).start()
    with take_stdout() as answer:
        try:
            answer.write(msgspec.json.encode(run_loop(_obey(order))).decode())
        except ShoalError as error:
            answer.write(str(error))
            return GAVE_UP if isinstance(error, ConfigError) else 1
        except SystemExit as error:
            answer.write(f"the spider called sys.exit({error.code!r})")
            return GAVE_UP
    return 0


def _end_with_the_coordinator() -> None:
    """A thread, because the user's code may stand still for ever in the main one."""
    os.read(sys.stdin.fileno(), 1)
    os._exit(1)


async def _obey(order: Order) -> Answer:
    spider = target.load(order.run.targets)
    own = msgspec.to_builtins(settings_of(spider))
    settings = settings_for(msgspec.structs.replace(order.run, spider=own), order.options)
    logs.configure(json_lines=settings.json_logs)
    _check_seeds(order.run)
    if not order.only_check:
        await _plant(order.run, spider, settings)
    return Answer(own)


def _check_seeds(run: Run) -> None:
    if run.seeds and not Path(run.seeds).is_file():
        raise ConfigError(f"seeds: no such file: {run.seeds}")


async def _plant(run: Run, spider: type[Spider], settings: Settings) -> None:
    async with open_stores(settings) as (frontier, results):
        rules = await _rules(run, settings, results)
        # A planter that was stopped for long must not begin anew what is over by now.
        stats = await frontier.start(run.crawl, rules, again=False)
        if stats.state.over:
            return
        await results.note_run(run.crawl, run_note(settings, run.targets, rules.previous))
        await _sow(run, frontier, settings)
        if not spider.plants_itself:
            await plant(frontier, run.crawl, target.create(spider), rules)


async def _rules(run: Run, settings: Settings, results: Results) -> Rules:
    """What the run may do. It does without the one before it rather than not begin."""
    rules = settings.rules()
    try:
        await check_previous(results, run.crawl, rules)
    except ConfigError as error:
        log.warning("%s: every page is fetched: %s", run.crawl, error)
        return msgspec.structs.replace(rules, previous=None)
    return rules


async def _sow(run: Run, frontier: Frontier, settings: Settings) -> None:
    """What the schedule names beside what the spider starts with."""
    places = Places(file=Path(run.seeds) if run.seeds else None, sitemaps=run.sitemaps)

    def refused(what: str, reason: Exception) -> None:
        log.warning("%s: %s skipped: %s", run.crawl, what, reason)

    sowing = Sowing(frontier, run.crawl, settings, refused, lambda what, count: None)
    await sowing.sow(places)


if __name__ == "__main__":
    sys.exit(main())
