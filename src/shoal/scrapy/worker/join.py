"""Opens the stores of a crawl and joins it."""

from __future__ import annotations

import logging

from scrapy import Spider
from scrapy.settings import BaseSettings

from shoal.config import Settings
from shoal.errors import ConfigError, ShoalError, UnknownCrawl
from shoal.exits.routes import tell_of_pools
from shoal.fleet.fleet import release_dead
from shoal.fleet.kept_sessions import refuse_lost_sessions
from shoal.fleet.published import check_publishing
from shoal.fleet.stores import open_stores
from shoal.frontier import open_frontier
from shoal.frontier.port import Overview, Queries
from shoal.frontier.values import CrawlState, Stats
from shoal.results.port import Results
from shoal.runtime.process import is_dead_here
from shoal.scrapy.reading import switch
from shoal.scrapy.spiders import RedisMixin
from shoal.scrapy.worker.fitness import refuse_handlers, refuse_lists, refuse_unfit
from shoal.scrapy.worker.settings import keeps_results, membership_of
from shoal.scrapy.worker.stand_in import stand_in
from shoal.sessions.telling import tell_of_sessions
from shoal.worker.assignment import Stores
from shoal.worker.visits.logins import flaw_of

log = logging.getLogger("shoal")

_SETTINGS = {
    "--fresh": "SCHEDULER_FLUSH_ON_START = True",
    "--session ": "SHOAL_SESSION = ",
    "--accounts": "SHOAL_ACCOUNTS",
}
"""Command-line options and their names in a project's settings."""


def project_stores(settings: Settings, project: BaseSettings) -> Stores[Results | None]:
    """Return the frontier that the settings name, and the results if the project keeps them.
    Nothing is asked of them yet."""
    if keeps_results(project):
        return open_stores(settings, archive=False)
    return Stores(open_frontier(settings.frontier, settings.state), None)


async def join(
    stores: Stores[Results | None],
    crawl: str,
    settings: Settings,
    project: BaseSettings,
    spider: Spider,
) -> None:
    """Begin the crawl, or take part in it.

    An unfinished crawl continues. A finished one starts over, as a spider of Scrapy does, unless it
    is to be kept or other workers are still there.
    """
    frontier = stores.frontier
    if settings.proxy_pools:
        refuse_handlers(project)
    if stores.results is not None:
        await stores.results.check()
    elif settings.publish is not None:
        raise ConfigError("SHOAL_PUBLISH publishes what is stored: set SHOAL_RESULTS as well")
    if membership_of(project) is None:
        await frontier.check()
        await check_publishing(settings, crawl)
        if await _starts_over(frontier, crawl, project, is_fed=isinstance(spider, RedisMixin)):
            await frontier.forget(crawl)
        await tell_of_pools(settings, frontier, refuse_unfit)
        # Before running processes hear that accounts leave in another way.
        await refuse_lost_sessions(frontier, crawl, settings.rules)
        await tell_of_sessions(settings, frontier, lambda table: flaw_of(stand_in(spider), table))
        await frontier.start(crawl, settings.rules)
    else:
        await refuse_lists(settings)
    await release_dead(frontier, crawl)


def in_scrapys_words(error: ShoalError) -> str:
    """Return the message of an error, with settings in place of command-line options."""
    words = str(error)
    for option, setting in _SETTINGS.items():
        words = words.replace(option, setting)
    return words


async def _starts_over(
    frontier: Queries, crawl: str, project: BaseSettings, *, is_fed: bool
) -> bool:
    """Whether the crawl is to start over. For a spider with a feed, being finished means nothing:
    it is finished whenever it has nothing to do."""
    stats = await _stats(frontier, crawl)
    flushes = switch(project, "SCHEDULER_FLUSH_ON_START")
    keeps = is_fed or switch(project, "SCHEDULER_PERSIST")
    if stats is None:
        return False
    # A crawl that max_pages has ended has something left, and continues.
    has_ended = stats.state is CrawlState.FINISHED and not stats.remaining
    if not flushes and (keeps or not has_ended):
        return False
    others = [w.worker for w in await frontier.workers(crawl) if not is_dead_here(w.worker)]
    if others and flushes:
        log.warning("crawl '%s' is not flushed: %s is there", crawl, others[0])
    return not others


async def _stats(frontier: Overview, crawl: str) -> Stats | None:
    try:
        return await frontier.stats(crawl)
    except UnknownCrawl:
        return None
