"""What `shoal worker` logs about its crawl: waiting for it, joining it, its progress."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from shoal.errors import UnknownCrawl
from shoal.fleet.crawl import Watch
from shoal.fleet.looking import Onlooker
from shoal.frontier.values import CrawlState, Stats
from shoal.insight.figures import counted, duration
from shoal.runtime.patience import wait_for_event
from shoal.worker.meter import Did

WAIT_EVERY_S, LOOK_EVERY_S = 0.25, 1.0
"""How often to look before there is a crawl, and after. Every process of a fleet looks, and that
must not keep the frontier busy."""
LAST_LOOK_S = 2.0
"""How long the last look may take: the frontier may be away."""

log = logging.getLogger("shoal")


class Joining:
    """Runs beside the workers, and ends with them."""

    def __init__(self, onlooker: Onlooker, crawl: str, address: str, watch: Watch) -> None:
        """`address` is the address of the frontier, without its password."""
        self._onlooker = onlooker
        self._crawl = crawl
        self._address = address
        self._watch = watch
        self._stopping = asyncio.Event()
        self._said = ""
        self._has_begun = False

    def drain(self) -> None:
        """Stop looking, even if the frontier is away and a look is waiting for it."""
        self._stopping.set()

    async def run(self) -> None:
        """Look until `drain` is called."""
        looking = asyncio.create_task(self._look_on())
        looking.add_done_callback(lambda _: self._stopping.set())
        await self._stopping.wait()
        if not looking.cancel():
            await looking  # Raises the error that ended it.
        elif not self._has_begun:  # Or it has, and was over before the next look.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._look(), LAST_LOOK_S)

    async def _look_on(self) -> None:
        while True:
            await self._look()
            every_s = LOOK_EVERY_S if self._has_begun else WAIT_EVERY_S
            await wait_for_event(self._stopping, every_s)

    async def _look(self) -> None:
        try:
            look = await self._onlooker.look()
        except UnknownCrawl:
            self._say(f"waiting for {self._crawl}: nobody has started it at {self._address}")
            return
        self._has_begun = look.stats.state is not CrawlState.NEW
        is_news = self._say(_state_line(look.stats))
        if is_news or not look.stats.state.over:  # A crawl that is over has no progress.
            self._watch(look)

    def _say(self, what: str) -> bool:
        """Log a line, unless it is the same as the last one. Returns whether it was logged."""
        if what == self._said:
            return False
        self._said = what
        log.info("%s", what)
        return True


def _state_line(stats: Stats) -> str:
    if stats.state is CrawlState.NEW:
        return f"waiting for {stats.crawl}: it has seeds, but nobody has started it"
    if stats.state.over:
        return f"{stats.crawl} is {stats.state}"
    return f"joined {stats.crawl}"


def leaving_line(did: Did, crawl: str, seconds: float) -> str:
    """A line that says what workers did, when they leave a crawl."""
    pages, items = counted(did.pages, "page"), counted(did.items, "item")
    return f"left {crawl} after {duration(seconds)}: {pages}, {items}, {did.dead:,} dead"
