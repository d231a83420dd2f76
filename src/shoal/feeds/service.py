"""Runs the feeds of shoal.toml: `shoal serve` runs all of them, a worker those of its crawl.

The feeds are independent: a broker that is away, a missing queue or a cancelled crawl holds up only
its own feed, and nothing else in the process. Any number of processes may run the same feed, just
like the same `shoal feed`.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from shoal.config import CONFIG_FILE
from shoal.core.addresses import masked
from shoal.errors import ShoalError
from shoal.feeds import open_source
from shoal.feeds.feeder import Feeder
from shoal.feeds.noting import noted
from shoal.feeds.progress import progress_logger
from shoal.feeds.tables import Feed, load_feeds
from shoal.frontier.port import IntakeAndNotes
from shoal.runtime.patience import wait_for_event
from shoal.runtime.reread import Reread

LOOK_EVERY_S = 1.0
"""How often shoal.toml is checked for changes."""
RETRY_S = 30.0
"""How long to wait before a failed feed is started again."""
LOG_EVERY_S = 60.0

log = logging.getLogger("shoal")


class Feeds:
    """Runs the feeds that shoal.toml has at the moment, of one crawl or of all."""

    def __init__(
        self, frontier: IntakeAndNotes, *, crawl: str | None = None, folder: Path | None = None
    ) -> None:
        """Without `crawl`, runs the feeds of all crawls. Raises ConfigError if shoal.toml is
        wrong."""
        self._frontier = frontier
        self._crawl = crawl
        self._file = Reread(folder or Path(), "feeds", load_feeds)
        self._stopping = asyncio.Event()

    def drain(self) -> None:
        """Stop gently: `run` returns after the current batches."""
        self._stopping.set()

    async def run(self) -> None:
        """Feed until `drain` is called."""
        running = dict[Feed, _RestartingFeed]()
        async with asyncio.TaskGroup() as group:
            while not self._stopping.is_set():
                wanted = self._wanted()
                for feed in running.keys() - wanted:
                    running.pop(feed).drain()
                for feed in wanted - running.keys():
                    running[feed] = _RestartingFeed(feed, self._frontier)
                    group.create_task(running[feed].run())
                await wait_for_event(self._stopping, LOOK_EVERY_S)
            for kept in running.values():
                kept.drain()

    def _wanted(self) -> set[Feed]:
        feeds = self._file.read()
        return {feed for feed in feeds if self._crawl in (None, feed.crawl)}


class _RestartingFeed:
    """Runs one feed, and starts it again after a failure."""

    def __init__(self, feed: Feed, frontier: IntakeAndNotes) -> None:
        self._feed = feed
        self._frontier = frontier
        self._about = f"{feed.crawl} from {masked(feed.address)}"
        self._stopping = asyncio.Event()
        self._feeder: Feeder | None = None

    def drain(self) -> None:
        self._stopping.set()
        if self._feeder is not None:
            self._feeder.drain()

    async def run(self) -> None:
        log.info("feeding %s, as %s says", self._about, CONFIG_FILE)
        while not self._stopping.is_set():
            try:
                await self._run_once()
            except ShoalError as error:
                log.error("%s: %s; trying again in %d s", self._about, error, RETRY_S)
                await wait_for_event(self._stopping, RETRY_S)
        log.info("no longer feeding %s", self._about)

    async def _run_once(self) -> None:
        source = open_source(self._feed.address)
        watch = progress_logger(self._about, LOG_EVERY_S)
        feeder = Feeder(source, self._frontier, self._feed.crawl, watch=watch)
        self._feeder = feeder
        try:
            async with noted(self._frontier.notes, self._feed.crawl, self._feed.address, feeder):
                await feeder.run()
        finally:
            self._feeder = None
            if feeder.fed.messages:
                log.info("%s: %s", self._about, feeder.fed.told)
            await source.close()
