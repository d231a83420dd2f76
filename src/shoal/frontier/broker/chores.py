"""What has to be done for a crawl whose tasks travel, in every process that works on it.

One task does all that concerns the carrier. Who asks for work waits for it for a moment at most:
a broker that is slow or away must not hold up what is here.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress

from shoal.errors import ConfigError, ShoalError, StorageBusy, UnknownCrawl
from shoal.frontier.broker.ageing import Ageing
from shoal.frontier.broker.freight import Freight
from shoal.frontier.broker.lows import Lows
from shoal.frontier.broker.missing import Search
from shoal.frontier.values import CrawlState

EVERY_S = 0.1
"""So often somebody looks whether there is something to do."""
AWAY_S = 0.5
"""So long after the broker did not answer."""
MOST_OUTBOX = 5_000
"""Blocks, some 25 MB, that wait for a broker that is away. Then no work is handed out: pages would
only bring more of them."""
END_S = 5.0
"""So long a call that is under way is waited for in the end."""
FILL_S = 0.5
"""So long those who ask for work wait for blocks."""
CLEARS_S = 30.0
"""So long a crawl that is over waits for a broker that is away, to leave no queues there: long
enough for one that is restarted."""
KEPT = "the broker keeps what it has of the crawl for now: %s"
LEFT = (
    "the broker keeps queues of the crawl, with nothing in them that is needed: %s; the same"
    " command again deletes them"
)
PUBLISH_S = 0.1
"""So long blocks that leave are waited for, before others are fetched: often the same are wanted,
and then they come at once."""

log = logging.getLogger("shoal")


class Chores:
    """The chores of one crawl."""

    def __init__(
        self,
        freight: Freight,
        search: Search,
        ageing: Ageing,
        publish_s: float = PUBLISH_S,
        clears_s: float = CLEARS_S,
    ) -> None:
        self._publish_s, self._clears_s = publish_s, clears_s
        self.freight = freight
        self._search = search
        self._ageing = ageing
        self.came = 0
        """Blocks that have come in."""
        self._task: asyncio.Task[None] | None = None
        self._publishing: asyncio.Task[None] | None = None
        self._asked: list[asyncio.Future[None]] = []
        self._more = 0
        self._wake = asyncio.Event()
        self._is_ending = False
        self._is_over = False
        self.is_away = False
        self._failure: ShoalError | None = None

    @property
    def is_stuck(self) -> bool:
        """Whether so much waits for a broker that is away that nobody should bring more."""
        return self.is_away and self.freight.outbox >= MOST_OUTBOX

    def begin(self) -> None:
        """From now on they are done. Raises what has made that impossible."""
        if self._failure is not None:
            raise self._failure
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="carrying")

    async def fill(self, more: int, within_s: float = FILL_S) -> None:
        """Have empty windows filled, and so many tasks more, unless that takes long."""
        if self.is_away:
            return
        asked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._asked.append(asked)
        self._more = max(self._more, more)
        self._wake.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await asked

    def stir(self) -> None:
        """There is something to do."""
        self._wake.set()

    async def end(self) -> None:
        """They are done no longer. Of a crawl that is over, all that the broker has is cleared up:
        that takes as long as the last blocks need to be safe. Also where there was nothing to do:
        somebody may have left queues behind."""
        await self.stop()
        give_up_at = time.monotonic() + self._clears_s
        while (error := await self._wound_up()) is not None:
            may_pass = self._is_over and isinstance(error, StorageBusy)
            if not may_pass or time.monotonic() >= give_up_at:
                log.warning(LEFT if self._is_over else KEPT, error)
                return
            self._note_away(error)
            await asyncio.sleep(AWAY_S)

    async def stop(self) -> None:
        """They are done no longer, and what is with the broker stays there. What is under way is
        waited for: a call that is broken off takes its connection with it."""
        if self._task is None:
            return
        self._is_ending = True
        self._wake.set()
        tasks = [task for task in (self._task, self._publishing) if task is not None]
        await asyncio.wait(tasks, timeout=END_S)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._task, self._publishing, self._is_ending = None, None, False

    async def _wound_up(self) -> ShoalError | None:
        """Clear up, if the crawl is over. Returns what has made that impossible."""
        try:
            await self._wind_up()
        except (StorageBusy, UnknownCrawl, ConfigError) as error:
            return error
        return None

    async def _wind_up(self) -> None:
        lows = await self.freight.lows()
        while _is_over(lows) and (due_s := self.freight.receipts.due_in_s) is not None:
            self._is_over = True
            await asyncio.sleep(due_s)
            lows = await self.freight.lows()
            await self.freight.acknowledge(lows)
        self._is_over = _is_over(lows)
        if self._is_over:
            await self.freight.clear_up(lows.crawl_id)
        await self.freight.note_requests(lows.crawl_id)

    async def _run(self) -> None:
        while self._failure is None and not self._is_ending:
            self._wake.clear()
            asked, self._asked = self._asked, []
            more, self._more = self._more, 0
            pause_s = EVERY_S
            try:
                await self._round(more)
            except StorageBusy as error:
                self._note_away(error)
                pause_s = AWAY_S
            except UnknownCrawl:
                pause_s = AWAY_S
            except ShoalError as error:
                self._failure = error
            for each in asked:
                if not each.done():
                    each.set_result(None)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._wake.wait()

    async def _round(self, more: int) -> None:
        lows = await self.freight.lows(more)
        if lows.state is CrawlState.CANCELLED:
            return
        await self._publish(lows)
        try:
            await self._fetch(lows)
        except StorageBusy:
            self._see_published()  # Where nothing comes, more may leave all the same.
            raise
        if self._see_published():
            self._note_back()

    async def _fetch(self, lows: Lows) -> None:
        self.came += await self.freight.refill(lows)
        await self.freight.acknowledge(lows)
        await self._search.look(lows)
        await self._ageing.look(lows.crawl_id)
        await self.freight.note_requests(lows.crawl_id)

    async def _publish(self, lows: Lows) -> None:
        """Begin to empty the outbox. What is wanted here does not wait for long: where queues have
        to be made, it takes seconds. Who is about to end begins nothing: nobody would see its end.
        """
        if lows.outbox and self._publishing is None and not self._is_ending:
            self._publishing = asyncio.create_task(self.freight.publish(lows.crawl_id))
            self._publishing.add_done_callback(lambda _: self._wake.set())
            await asyncio.wait([self._publishing], timeout=self._publish_s)

    def _see_published(self) -> bool:
        """Whether the broker takes blocks, or none is to be published: then it is there. False: it
        is being seen. Raises what made that impossible."""
        if self._publishing is not None:
            if not self._publishing.done():
                return False
            done, self._publishing = self._publishing, None
            done.result()
        return True

    def _note_away(self, error: ShoalError) -> None:
        if not self.is_away:
            log.warning("waiting for the broker: %s", error)
        self.is_away = True

    def _note_back(self) -> None:
        if self.is_away:
            log.info("the broker is back")
        self.is_away = False


def _is_over(lows: Lows) -> bool:
    """Whether nothing of the crawl is outside, nor will be. What is still in the outbox are copies
    of blocks that have come in."""
    return lows.state.over and not lows.outside
