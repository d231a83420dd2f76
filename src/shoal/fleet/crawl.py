"""Runs a crawl to its end: seeds, workers, a watcher and a summary."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from shoal import config
from shoal.config import Settings
from shoal.core.addresses import masked
from shoal.errors import ConfigError, UnknownCrawl, cause_of
from shoal.exits.routes import tell_of_pools
from shoal.fetch.http.client import warn_of_proxies
from shoal.fleet.child import WorkerOrder
from shoal.fleet.fleet import release_dead
from shoal.fleet.kept_pools import refuse_lost_pools
from shoal.fleet.kept_sessions import refuse_lost_sessions
from shoal.fleet.life_hooks import Closing, tell_opened
from shoal.fleet.looking import Glance, Onlooker
from shoal.fleet.published import check_publishing
from shoal.fleet.spider_maker import SpiderMaker, refuse_other_arguments
from shoal.fleet.stores import file_store_of, stores_at
from shoal.fleet.summary import Summary, summary_of
from shoal.fleet.target import NO_ARGUMENTS, is_scrapy, spec_of
from shoal.fleet.workers import needs_processes, workers_for
from shoal.frontier.patient import patient
from shoal.frontier.port import Frontier, Overview, WorkIntake
from shoal.frontier.values import CrawlState, Stats
from shoal.results.port import Results, RunNote
from shoal.runtime.eventloop import run
from shoal.runtime.patience import wait_for_event
from shoal.runtime.signals import Workers, stopped_by_signals
from shoal.runtime.watchdog import watched
from shoal.seeds.seeding import collect, refuse_private_seeds, seed_from_spider
from shoal.sessions.telling import tell_of_sessions
from shoal.spider.attributes import mistaken_attributes, mistaken_line
from shoal.spider.crawl_names import settings_with
from shoal.spider.hooks import mistaken_hooks
from shoal.spider.own_settings import settings_of
from shoal.spider.spider import Spider
from shoal.spider.starting import unread_starts
from shoal.worker.assignment import Stores
from shoal.worker.error_limit import ErrorLimit
from shoal.worker.visits.logins import flaw_of
from shoal.worker.visits.recrawl import check_previous, mark_gone_items

WATCH_EVERY_S = 0.25

log = logging.getLogger("shoal")

Watch = Callable[[Glance], object]
Stopped = Callable[[Workers], AbstractContextManager[asyncio.Event]]


def crawl(
    spider: type[Spider],
    *,
    args: Mapping[str, Any] = NO_ARGUMENTS,
    fresh: bool = False,
    **options: Any,
) -> Summary:
    """Run a spider to its end, or continue where an earlier run stopped.

    `args` are the spider's arguments: `args={"category": "books"}`. Options are those of the
    command line (`rate="5/s"`, `workers=4`, `frontier=...`). A single worker runs in this process.
    Several workers run in processes of their own, which load the spider again: it must then be
    importable, or defined at the top level of the script that runs.

    A handler that never returns ends a worker process, which is replaced. It does not end this
    process: stderr then shows where it hangs.
    """
    settings = config.load(spider=settings_of(spider), options=options, environ=os.environ)
    settings = settings_with(spider, settings, args)
    targets = None
    if needs_processes([], settings):
        targets = spec_of(spider)
        if targets is None:
            raise ConfigError(f"{spider.__name__}: several workers need a spider they can import")
    return run(run_crawl(spider, settings, targets=targets, fresh=fresh))


async def run_crawl(
    spider: type[Spider],
    settings: Settings,
    *,
    targets: list[str] | None,
    fresh: bool = False,
    watch: Watch = lambda look: None,
    stopped: Stopped = stopped_by_signals,
) -> Summary:
    """Run a crawl to its end: with a fleet that loads `targets`, or in this process if None.

    `stopped` gives the event that is set when the crawl is to stop, and drains its workers then.
    """
    began = time.monotonic()
    name = settings.name or spider.name
    maker = SpiderMaker(spider, settings.plugins, settings.rules.args)
    own_spider = maker.spider
    for attribute, meant in mistaken_attributes(spider).items():
        log.warning("%s.%s", spider.__name__, mistaken_line(attribute, meant))
    for _, mistake in mistaken_hooks(spider):
        log.warning("%s to be called as a hook", mistake)
    if targets is None or not is_scrapy(targets):  # Scrapy honours these variables.
        warn_of_proxies(os.environ)
        if flaw := unread_starts(spider):
            raise ConfigError(flaw)
    if not settings.allow_private:
        refuse_private_seeds(own_spider)
    async with stores_at(settings) as stores:
        frontier, results = stores.frontier, stores.results
        await frontier.check()
        await check_publishing(settings, name)
        before = None if fresh else await _stats_of(frontier, name)
        await _begin(stores, name, settings, targets or [], own_spider, fresh=fresh)
        order = WorkerOrder(name, targets or [], settings)
        workers = workers_for(order, stores, lambda: maker)
        # Never end this process: it may be the user's own program. The `shoal` command holds no
        # tasks: of the spider's code, only start() runs in it.
        with watched(settings.rules.lease_s, ends=False):
            stats = await _run(workers, frontier, name, own_spider, settings, watch, stopped)
        gone = await mark_gone_items(results, frontier, stats)
        summary = await summary_of(stores, stats, time.monotonic() - began, gone)
        summary.finished_before = _finished_before(before, stats)
        if stats.state.over:
            await Closing(patient(frontier), maker, partial(_as_it_is, summary)).done(stats)
        return summary


async def _as_it_is(summary: Summary, stats: Stats) -> Summary:
    return summary


async def _stats_of(frontier: Overview, name: str) -> Stats | None:
    try:
        return await frontier.stats(name)
    except UnknownCrawl:
        return None


def _finished_before(before: Stats | None, after: Stats) -> float | None:
    """When the crawl had finished before this run, if the run changed nothing; else None."""
    if before is None or not before.state is after.state is CrawlState.FINISHED:
        return None
    did = [(stats.added, stats.sent, stats.ended) for stats in (before, after)]
    return before.finished_at if did[0] == did[1] else None


async def _begin(
    stores: Stores[Results],
    name: str,
    settings: Settings,
    targets: list[str],
    spider: Spider,
    *,
    fresh: bool,
) -> None:
    """Start the crawl in both stores, or start it over, and release the leases of dead workers."""
    frontier, results = stores.frontier, stores.results
    await check_previous(results, name, settings.rules)
    await tell_of_pools(settings, frontier)
    if not fresh:  # First: tell_of_sessions changes the exits of accounts for running workers.
        await refuse_lost_pools(frontier, name, settings.rules)
        await refuse_lost_sessions(frontier, name, settings.rules)
        await refuse_other_arguments(frontier, name, type(spider), settings.rules)
    await tell_of_sessions(settings, frontier, partial(flaw_of, spider))
    if fresh:
        if not results.readable:
            await results.forget(name)  # Raises, and says why, before anything is deleted.
        # The frontier goes first: items without their tasks are scraped again, but tasks that are
        # done without their items would mean lost items.
        await frontier.forget(name)
        await results.forget(name)
    address = masked(settings.frontier)
    await _refuse_silent_restart(frontier, results, name, address)
    await tell_opened(frontier, name, spider)
    await frontier.start(name, settings.rules)
    await results.note_run(name, run_note(settings, targets, settings.rules.previous))
    await release_dead(frontier, name)


def run_note(settings: Settings, targets: list[str], previous: str | None) -> RunNote:
    """The note that the results store keeps on how a crawl runs."""
    # The archive's address contains no login: opening the archive refuses one that does.
    where, files = settings.archive or "", file_store_of(settings)
    return RunNote(masked(settings.frontier), targets, where, previous or "", files)


async def _run(
    workers: Workers,
    frontier: Frontier,
    name: str,
    spider: Spider,
    settings: Settings,
    watch: Watch,
    stopped: Stopped,
) -> Stats:
    """Seed, work and watch at the same time, until the crawl is over or is told to stop."""
    onlooker = Onlooker(frontier, name, settings)
    try:
        with stopped(workers) as stopping:
            async with asyncio.TaskGroup() as group:
                beside: list[asyncio.Task[Any]] = []

                def end() -> None:
                    stopping.set()
                    workers.drain()

                beside.append(group.create_task(_watch(onlooker, watch)))
                if limit := settings.rules.stop_after_errors:
                    beside.append(group.create_task(_end_after_errors(frontier, name, limit, end)))
                if not spider.seeds_itself:
                    seeding = seed_from_spider(frontier, name, spider, settings.rules)
                    beside.append(group.create_task(seeding))
                stats = await _work(workers, frontier, name, stopping)
                for task in beside:
                    task.cancel()
    except BaseExceptionGroup as group_error:
        raise cause_of(group_error) from None
    return stats


async def _work(
    workers: Workers, frontier: WorkIntake, name: str, stopping: asyncio.Event
) -> Stats:
    """Work until the whole crawl is over.

    It is not over if it was started again meanwhile, or if seeds are left in its inbox.
    """
    while True:
        await workers.run()
        stats = await patient(frontier).stats(name)
        while stats.state is CrawlState.FINISHED and stats.inbox and not stopping.is_set():
            await collect(frontier, name, stats.rules)
            stats = await patient(frontier).stats(name)
            if stats.inbox:  # Another process collects the seeds; if it dies, this one soon can.
                await wait_for_event(stopping, WATCH_EVERY_S)
        if stopping.is_set() or stats.state.over:
            return stats


async def _refuse_silent_restart(
    frontier: Overview, results: Results, name: str, address: str
) -> None:
    """Raise ConfigError if the frontier has lost a crawl that ran there, by the results' note.

    Otherwise the crawl would silently begin again from nothing.
    """
    note = await results.note_of(name)
    if note is None or note.frontier != address:
        return
    if await _stats_of(frontier, name) is None:
        raise ConfigError(
            f"{address} knows no crawl '{name}', which has run there: has it lost its data?"
            " --fresh starts over and forgets the items; --name begins another crawl"
        )


async def _end_after_errors(
    frontier: Overview, name: str, limit: int, end: Callable[[], object]
) -> None:
    """End this run once its workers have paused the crawl for too many errors.

    The spider has to be fixed then, and this run would go on with the old code.
    """
    errors, is_passed = ErrorLimit(limit), False
    while True:
        stats = await patient(frontier).stats(name)
        is_passed = errors.is_passed(stats) or is_passed
        if is_passed and stats.state is CrawlState.PAUSED:
            end()
            return
        await asyncio.sleep(WATCH_EVERY_S)


async def _watch(onlooker: Onlooker, watch: Watch) -> None:
    was_exact = True
    while True:
        look = await onlooker.look()
        stats = look.stats
        if was_exact and stats.bloom and stats.rules.seen == "auto":
            was_exact = False
            log.warning(
                "crawl '%s' has many URLs: new ones are remembered in a Bloom filter, which takes"
                " %.2g%% of them for known ones (seen = exact prevents that)",
                stats.crawl,
                stats.rules.seen_error * 100,
            )
        watch(look)
        await asyncio.sleep(WATCH_EVERY_S)
