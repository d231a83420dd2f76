"""A child process of the coordinator that adds the seeds of one run to the frontier.

User code runs here, apart from the coordinator, so it cannot stop other runs. The process gets its
order as described in runtime/orders.py, and ends with its parent. If it dies, the seeds it has
added are duplicates for the next process.
"""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from shoal.config import Rules, Settings
from shoal.coordinator.runs import Run
from shoal.coordinator.schedules import Schedule, settings_for
from shoal.errors import ConfigError, ShoalError
from shoal.exits.routes import tell_of_pools
from shoal.fleet import target
from shoal.fleet.crawl import run_note
from shoal.fleet.life_hooks import tell_opened
from shoal.fleet.stores import stores_at
from shoal.frontier.port import IntakeAndNotes
from shoal.results.port import Results
from shoal.runtime import logs
from shoal.runtime.eventloop import run as run_loop
from shoal.runtime.orders import TryAgain, end_with_parent, obey
from shoal.seeds.seeding import seed_from_spider
from shoal.seeds.sources import Seeder, Sources
from shoal.sessions.telling import tell_of_sessions
from shoal.spider.crawl_names import settings_with
from shoal.spider.own_settings import settings_of
from shoal.spider.spider import Spider
from shoal.worker.visits.logins import flaw_of
from shoal.worker.visits.recrawl import check_previous

log = logging.getLogger("shoal")


class SeedOrder(msgspec.Struct):
    """The order to a seeding process."""

    schedule: Schedule
    options: dict[str, Any]
    """The options from the parent's command line."""
    run: Run | None = None
    """The run to add seeds to. None: only load the spider, and answer with its settings."""


class SeedAnswer(msgspec.Struct):
    """The last words of a seeding process that has succeeded."""

    spider: dict[str, Any] = {}
    """The settings of the spider's class."""


def main() -> int:
    """Carry out the order on stdin."""
    return obey(SeedOrder, _obey)


def _obey(order: SeedOrder) -> str:
    end_with_parent()
    try:
        return msgspec.json.encode(run_loop(_work(order))).decode()
    except ConfigError:
        raise
    except ShoalError as error:
        raise TryAgain(str(error)) from error
    except SystemExit as error:
        raise ConfigError(f"the spider called sys.exit({error.code!r})") from None


async def _work(order: SeedOrder) -> SeedAnswer:
    schedule, run = order.schedule, order.run
    spider = target.load(schedule.targets)
    own = msgspec.to_builtins(settings_of(spider))
    settings = settings_for(schedule, own, order.options, run.previous if run else None)
    settings = settings_with(spider, settings, schedule.args)
    logs.configure(json_lines=settings.json_logs, crawl=run.crawl if run else "")
    _check_seeds(schedule)
    if run is not None:
        await _seed(run, schedule, spider, settings)
    return SeedAnswer(own)


def _check_seeds(schedule: Schedule) -> None:
    if schedule.seeds and not Path(schedule.seeds).is_file():
        raise ConfigError(f"seeds: no such file: {schedule.seeds}")


async def _seed(run: Run, schedule: Schedule, spider: type[Spider], settings: Settings) -> None:
    async with stores_at(settings, archive=False) as stores:
        frontier, results = stores.frontier, stores.results
        rules = await _rules(run, settings, results)
        # `again=False`: after a long pause, a crawl that is over must not start again.
        await tell_of_pools(settings, frontier)
        own_spider = target.create(spider, settings.plugins, rules.args)
        await tell_of_sessions(settings, frontier, partial(flaw_of, own_spider))
        await tell_opened(frontier, run.crawl, own_spider)
        stats = await frontier.start(run.crawl, rules, again=False)
        if stats.state.over:
            return
        await results.note_run(run.crawl, run_note(settings, schedule.targets, rules.previous))
        await _seed_from_sources(run.crawl, schedule, frontier)
        if not spider.seeds_itself:
            await seed_from_spider(frontier, run.crawl, own_spider, rules)


async def _rules(run: Run, settings: Settings, results: Results) -> Rules:
    """The rules of the run. If its previous run cannot be used, the run begins without it."""
    rules = settings.rules
    try:
        await check_previous(results, run.crawl, rules)
    except ConfigError as error:
        log.warning("%s: every page will be fetched: %s", run.crawl, error)
        return msgspec.structs.replace(rules, previous=None)
    return rules


async def _seed_from_sources(crawl: str, schedule: Schedule, frontier: IntakeAndNotes) -> None:
    """Add the seeds from the file and the sitemaps of the schedule, besides those of the spider."""
    file = Path(schedule.seeds) if schedule.seeds else None
    sources = Sources(file=file, sitemaps=schedule.sitemaps)

    def rejected(what: str, reason: Exception) -> None:
        log.warning("%s: %s skipped: %s", crawl, what, reason)

    await Seeder(frontier, crawl, rejected, lambda what, count: None).seed(sources)
