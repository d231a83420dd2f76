"""Running a crawl to its end: seeds, workers, a watcher, and a summary."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from shoal import config
from shoal.config import Settings
from shoal.core.addresses import masked
from shoal.core.causes import Cause
from shoal.errors import ConfigError, UnknownCrawl, cause_of
from shoal.exits.routes import tell_of_pools
from shoal.fetch.http.client import warn_of_proxies
from shoal.fleet.child import WorkerOrder
from shoal.fleet.fleet import release_dead
from shoal.fleet.kept_pools import refuse_lost_pools
from shoal.fleet.kept_sessions import refuse_lost_sessions
from shoal.fleet.published import check_publishing
from shoal.fleet.stores import file_store_of, stores_at
from shoal.fleet.target import create, is_scrapy, spec_of
from shoal.fleet.workers import needs_processes, workers_for
from shoal.frontier.causes import causes_of_death
from shoal.frontier.patient import patient
from shoal.frontier.port import IntakeAndUpkeep, Overview, WorkIntake
from shoal.frontier.values import CrawlState, Stats
from shoal.results.port import Results, RunNote
from shoal.results.rejections import causes_of_rejection
from shoal.runtime.eventloop import run
from shoal.runtime.patience import patiently, wait_for_event
from shoal.runtime.signals import Workers, stopped_by_signals
from shoal.runtime.watchdog import watched
from shoal.seeds.seeding import collect, seed_from_spider
from shoal.sessions.telling import tell_of_sessions
from shoal.spider.spider import Spider, settings_of
from shoal.worker.assignment import Stores
from shoal.worker.error_limit import ErrorLimit
from shoal.worker.visits.logins import flaw_of
from shoal.worker.visits.recrawl import check_previous, mark_gone_items

WATCH_EVERY_S = 0.25

log = logging.getLogger("shoal")

Watch = Callable[[Stats], object]


class Summary(msgspec.Struct, kw_only=True):
    """How a crawl stands when `crawl` returns."""

    stats: Stats
    items: dict[str, int]
    """Items stored, per kind."""
    gone: int = 0
    """Items of the previous crawl that are not there any more."""
    seconds: float
    """How long this run took."""
    causes: list[Cause] = []
    """What tasks died of, the most frequent first."""
    rejections: list[Cause] = []
    """Why items were rejected."""

    @property
    def finished(self) -> bool:
        """Whether the whole crawl is finished."""
        return self.stats.state is CrawlState.FINISHED

    @property
    def exit_code(self) -> int:
        """0 finished, 3 finished with dead tasks, 1 stopped before its end."""
        if not self.finished:
            return 1
        return 3 if self.stats.dead else 0


def crawl(spider: type[Spider], *, fresh: bool = False, **options: Any) -> Summary:
    """Run a spider to its end, or continue where an earlier run stopped.

    Options are those of the command line (`rate="5/s"`, `workers=4`, `frontier=...`). One worker
    runs in this process; several are processes of their own, which load the spider anew: then it
    must be importable, or defined at the top level of the script that runs. A handler that does not
    return stops a process of its own, but not this one: it is said on stderr where it stands.
    """
    settings = config.load(spider=settings_of(spider), options=options, environ=os.environ)
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
    watch: Watch = lambda stats: None,
) -> Summary:
    """Run a crawl to its end: with a fleet that loads `targets`, or in this process if None."""
    began = time.monotonic()
    name = settings.name or spider.name
    own_spider = create(spider, settings.plugins)
    if targets is None or not is_scrapy(targets):  # Scrapy goes through proxies.
        warn_of_proxies(os.environ)
    async with stores_at(settings) as stores:
        frontier, results = stores.frontier, stores.results
        await check_publishing(settings, name)
        await _begin(stores, name, settings, targets or [], own_spider, fresh=fresh)
        order = WorkerOrder(name, targets or [], settings)
        workers = workers_for(order, stores, lambda: own_spider)
        # This may be somebody's own program, which is not ours to end. The command has nothing in
        # hand: only start() runs in it.
        with watched(settings.rules.lease_s, ends=False):
            stats = await _run(workers, frontier, name, own_spider, settings, watch)
        return Summary(
            stats=stats,
            gone=await mark_gone_items(results, stats),
            items=await _counted(results, name),
            causes=await causes_of_death(patient(frontier), stats),
            rejections=await _rejections(results, stats),
            seconds=time.monotonic() - began,
        )


async def _counted(results: Results, name: str) -> dict[str, int]:
    """The items, for the summary. A store that is away at the very end is waited for."""
    if not results.readable:
        return {}
    return await patiently("results store", lambda: results.count(name))


async def _rejections(results: Results, stats: Stats) -> list[Cause]:
    if not stats.rejected:
        return []
    return await patiently("results store", lambda: causes_of_rejection(results, stats.crawl))


async def _begin(
    stores: Stores[Results],
    name: str,
    settings: Settings,
    targets: list[str],
    spider: Spider,
    *,
    fresh: bool,
) -> None:
    """Start the crawl in both stores, or start it over, and take back what dead workers held."""
    frontier, results = stores.frontier, stores.results
    await check_previous(results, name, settings.rules)
    await tell_of_pools(settings, frontier)
    if not fresh:  # Before workers that are there hear that accounts leave in another way.
        await refuse_lost_pools(frontier, name, settings.rules)
        await refuse_lost_sessions(frontier, name, settings.rules)
    await tell_of_sessions(settings, frontier, partial(flaw_of, spider))
    if fresh:
        if not results.readable:
            await results.forget(name)  # Refuses, and says why, before anything is gone.
        # The frontier first: items without their tasks are scraped again, the other way round
        # they would be lost.
        await frontier.forget(name)
        await results.forget(name)
    address = masked(settings.frontier)
    await _refuse_silent_restart(frontier, results, name, address)
    await frontier.start(name, settings.rules)
    await results.note_run(name, run_note(settings, targets, settings.rules.previous))
    await release_dead(frontier, name)


def run_note(settings: Settings, targets: list[str], previous: str | None) -> RunNote:
    """How a crawl runs, for the results to remember."""
    # An archive's address has no login in it: that was refused when it was opened.
    where, files = settings.archive or "", file_store_of(settings)
    return RunNote(masked(settings.frontier), targets, where, previous or "", files)


async def _run(
    workers: Workers,
    frontier: IntakeAndUpkeep,
    name: str,
    spider: Spider,
    settings: Settings,
    watch: Watch,
) -> Stats:
    """Seed, work and watch at once, until the crawl is over or we are told to stop."""
    try:
        with stopped_by_signals(workers) as stopping:
            async with asyncio.TaskGroup() as group:
                beside: list[asyncio.Task[Any]] = []

                def end() -> None:
                    stopping.set()
                    workers.drain()

                beside.append(group.create_task(_watch(frontier, name, watch)))
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
    """Work until the whole crawl is over. One that others start again meanwhile is not, nor one
    for which there are still seeds in the inbox."""
    while True:
        await workers.run()
        stats = await patient(frontier).stats(name)
        while stats.state is CrawlState.FINISHED and stats.inbox and not stopping.is_set():
            await collect(frontier, name, stats.rules)
            stats = await patient(frontier).stats(name)
            if stats.inbox:  # Somebody else is at it, or has died at it: then it is ours soon.
                await wait_for_event(stopping, WATCH_EVERY_S)
        if stopping.is_set() or stats.state.over:
            return stats


async def _refuse_silent_restart(
    frontier: Overview, results: Results, name: str, address: str
) -> None:
    """A frontier that has lost its data must not look like one that never had any."""
    note = await results.note_of(name)
    if note is None or note.frontier != address:
        return
    try:
        await frontier.stats(name)
    except UnknownCrawl:
        raise ConfigError(
            f"{address} knows no crawl '{name}', which has run there: has it lost its data?"
            " --fresh starts over and forgets the items; --name begins another crawl"
        ) from None


async def _end_after_errors(
    frontier: Overview, name: str, limit: int, end: Callable[[], object]
) -> None:
    """Workers pause a crawl with so many errors. Its spider is to be mended then, and those who run
    it here must load it anew: so this run is over."""
    errors, is_passed = ErrorLimit(limit), False
    while True:
        stats = await patient(frontier).stats(name)
        is_passed = errors.is_passed(stats) or is_passed
        if is_passed and stats.state is CrawlState.PAUSED:
            end()
            return
        await asyncio.sleep(WATCH_EVERY_S)


async def _watch(frontier: Overview, name: str, watch: Watch) -> None:
    was_exact = True
    while True:
        stats = await patient(frontier).stats(name)
        if was_exact and stats.bloom and stats.rules.seen == "auto":
            was_exact = False
            log.warning(
                "crawl '%s' has many URLs: new ones are remembered in a Bloom filter, which takes"
                " %.2g%% of them for known ones (seen = exact prevents that)",
                name,
                stats.rules.seen_error * 100,
            )
        watch(stats)
        await asyncio.sleep(WATCH_EVERY_S)
