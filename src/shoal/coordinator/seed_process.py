"""A process that brings the seeds of one run into the frontier.

The user's code runs here, apart from the coordinator: whatever it does, others go on. The order
comes on stdin; that it ends means that the parent is gone. What is planted already when a
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

from shoal.config import Rules, Settings
from shoal.coordinator.runs import Run
from shoal.coordinator.schedules import Schedule, settings_for
from shoal.errors import ConfigError, ShoalError
from shoal.fleet import target
from shoal.fleet.child import GAVE_UP, take_stdout
from shoal.fleet.crawl import open_stores, run_note
from shoal.frontier.port import IntakeAndNotes
from shoal.results.port import Results
from shoal.runtime import logs
from shoal.runtime.eventloop import run as run_loop
from shoal.seeds.seeding import plant
from shoal.seeds.sources import Places, Sowing
from shoal.spider.spider import Spider, settings_of
from shoal.worker.recrawl import check_previous

log = logging.getLogger("shoal")


class Order(msgspec.Struct):
    """What a planter is to do."""

    schedule: Schedule
    options: dict[str, Any]
    """What its parent was told on the command line."""
    run: Run | None = None
    """The run whose seeds it brings in. None: it only looks whether the spider can be loaded."""


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
    schedule, run = order.schedule, order.run
    spider = target.load(schedule.targets)
    own = msgspec.to_builtins(settings_of(spider))
    settings = settings_for(schedule, own, order.options, run.previous if run else None)
    logs.configure(json_lines=settings.json_logs)
    _check_seeds(schedule)
    if run is not None:
        await _plant(run, schedule, spider, settings)
    return Answer(own)


def _check_seeds(schedule: Schedule) -> None:
    if schedule.seeds and not Path(schedule.seeds).is_file():
        raise ConfigError(f"seeds: no such file: {schedule.seeds}")


async def _plant(run: Run, schedule: Schedule, spider: type[Spider], settings: Settings) -> None:
    async with open_stores(settings) as (frontier, results):
        rules = await _rules(run, settings, results)
        # A planter that was stopped for long must not begin anew what is over by now.
        stats = await frontier.start(run.crawl, rules, again=False)
        if stats.state.over:
            return
        await results.note_run(run.crawl, run_note(settings, schedule.targets, rules.previous))
        await _sow(run.crawl, schedule, frontier)
        if not spider.plants_itself:
            await plant(frontier, run.crawl, target.create(spider), rules)


async def _rules(run: Run, settings: Settings, results: Results) -> Rules:
    """What the run may do. It does without the one before it rather than not begin."""
    rules = settings.rules
    try:
        await check_previous(results, run.crawl, rules)
    except ConfigError as error:
        log.warning("%s: every page is fetched: %s", run.crawl, error)
        return msgspec.structs.replace(rules, previous=None)
    return rules


async def _sow(crawl: str, schedule: Schedule, frontier: IntakeAndNotes) -> None:
    """What the schedule names beside what the spider starts with."""
    file = Path(schedule.seeds) if schedule.seeds else None
    places = Places(file=file, sitemaps=schedule.sitemaps)

    def refused(what: str, reason: Exception) -> None:
        log.warning("%s: %s skipped: %s", crawl, what, reason)

    await Sowing(frontier, crawl, refused, lambda what, count: None).sow(places)


if __name__ == "__main__":
    sys.exit(main())
