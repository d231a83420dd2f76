"""Calls the hooks `opened` and `closed(summary)` of a crawl, once for the whole fleet."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any

from shoal.config import Rules
from shoal.errors import ConfigError
from shoal.fleet.summary import Summary
from shoal.frontier.once import Once
from shoal.frontier.port import HasNotes, IntakeAndNotes
from shoal.frontier.values import CrawlState, Stats
from shoal.runtime.patience import NowAndThen
from shoal.spider.reading import is_meant_for_us
from shoal.spider.spider import Spider

OPENED, CLOSED = "opened", "closed"
"""Topics of notes: CRAWL -> Claim."""
POLL_S = 0.5
SAY_EVERY_S = 30.0

log = logging.getLogger("shoal")


async def tell_opened(frontier: IntakeAndNotes, crawl: str, spider: Spider) -> None:
    """Have `opened` called before a crawl starts, unless it was, and wait until it is done.

    Raises ConfigError if the hook raises here: then the crawl does not begin.
    """
    hooks = spider._shoal_hooks.opened
    if not hooks:
        return
    await frontier.add(crawl, [])  # Creates the crawl, so that it has a creation time.
    stats = await frontier.stats(crawl)
    if stats.started_at is not None:
        return
    once, waiting = Once(frontier.notes, OPENED), NowAndThen(SAY_EVERY_S)
    while not await once.tried(crawl, repr(stats.created_at), partial(_open, hooks, crawl)):
        if waiting.is_due():
            log.info("waiting for opened() of crawl '%s', which runs elsewhere", crawl)
        await asyncio.sleep(POLL_S)


async def _open(hooks: Iterable[Callable[[], Any]], crawl: str) -> None:
    for hook in hooks:
        if (error := await _raised(hook)) is not None:
            log.error("opened() of crawl '%s' raised", crawl, exc_info=error)
            why = f"{type(error).__name__}: {error}".partition("\n")[0]
            raise ConfigError(f"crawl '{crawl}' is not begun, as opened() raised {why}") from error


class Closing:
    """Has `closed` called when a crawl is over, unless it was called since the last progress."""

    def __init__(
        self,
        frontier: HasNotes,
        spider_for: Callable[[Rules], Spider],
        summarize: Callable[[Stats], Awaitable[Summary]],
    ) -> None:
        self._once = Once(frontier.notes, CLOSED)
        self._spider_for = spider_for
        self._summarize = summarize
        self._told = ""

    async def tried(self, stats: Stats) -> bool:
        """Call `closed` for a crawl that is over, unless that is done. False: another process is
        calling it."""
        end = _end_of(stats)
        if end == self._told or (stats.state is CrawlState.FINISHED and stats.inbox):
            return True
        hooks = self._spider_for(stats.rules)._shoal_hooks.closed
        tell = partial(self._tell, hooks, stats)
        if hooks and not await self._once.tried(stats.crawl, end, tell):
            return False
        self._told = end
        return True

    async def done(self, stats: Stats) -> None:
        """Call `closed`, or wait until another process has."""
        while True:
            if await self.tried(stats):
                return
            await asyncio.sleep(POLL_S)

    async def _tell(self, hooks: Iterable[Callable[[Summary], Any]], stats: Stats) -> None:
        summary = await self._summarize(stats)
        for hook in hooks:
            if (error := await _raised(partial(hook, summary))) is not None:
                log.error("closed() of crawl '%s' raised", stats.crawl, exc_info=error)


def _end_of(stats: Stats) -> str:
    """Identifies one end of a crawl: any work done since an earlier end changes it."""
    did = stats.added, stats.done, stats.dead, stats.dropped, stats.sent
    return " ".join(map(str, (repr(stats.created_at), stats.state, *did)))


async def _raised(hook: Callable[[], Any]) -> BaseException | None:
    """Call a hook and return what it raised, if anything.

    A hook that is not async runs in a thread, because this process must keep reporting that it is
    alive meanwhile.
    """
    try:
        given = await asyncio.to_thread(hook)
        if inspect.isawaitable(given):
            await given
    except BaseException as error:  # Also sys.exit().
        if is_meant_for_us(error):
            raise
        return error
    return None
