"""Runs the chores of a crawl with a carrier, in every process that works on it: publishing blocks,
refilling windows, acknowledging, renewing old blocks, looking for missing ones.

They run in the background. A request for work waits for them for a moment at most: a broker that is
slow or away must not hold up the tasks in Redis.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress

from shoal.errors import ConfigError, ShoalError, StorageBusy, UnknownCrawl
from shoal.frontier.broker.ageing import Ageing
from shoal.frontier.broker.backlog import Backlog
from shoal.frontier.broker.block_mover import BlockMover
from shoal.frontier.broker.missing import MissingSearch
from shoal.frontier.values import CrawlState

EVERY_S = 0.1
"""The pause between two rounds of chores."""
AWAY_S = 0.5
"""The pause after a round in which the broker did not answer."""
MOST_OUTBOX = 5_000
"""Blocks, some 25 MB. If this many wait for a broker that is away, no work is leased: more pages
would only add more blocks."""
END_S = 5.0
"""How long `stop` waits for calls that are under way."""
FILL_S = 0.5
"""How long a request for work waits for blocks."""
CLEARS_S = 30.0
"""How long a finished crawl waits for a broker that is away, to delete its queues there. A broker
that is restarted is back by then."""
KEPT = "the broker keeps what it has of the crawl for now: %s"
LEFT = (
    "the broker keeps queues of the crawl, with nothing in them that is needed: %s; the same"
    " command again deletes them"
)
PUBLISH_S = 0.1
"""How long a round waits for publishing before it fetches: often the blocks just published are the
ones that are needed, and then this round can fetch them."""

log = logging.getLogger("shoal")


class Chores:
    """Runs the chores of one crawl."""

    def __init__(
        self,
        mover: BlockMover,
        search: MissingSearch,
        ageing: Ageing,
        publish_s: float = PUBLISH_S,
        clears_s: float = CLEARS_S,
    ) -> None:
        self._publish_s, self._clears_s = publish_s, clears_s
        self.mover = mover
        self._search = search
        self._ageing = ageing
        self.came = 0
        """How many blocks have come back so far."""
        self._task: asyncio.Task[None] | None = None
        self._publishing: asyncio.Task[bool] | None = None
        self._asked: list[asyncio.Future[None]] = []
        self._more = 0
        self._wake = asyncio.Event()
        self._is_ending = False
        self._is_over = False
        self.is_away = False
        self._failure: ShoalError | None = None

    @property
    def is_stuck(self) -> bool:
        """Whether the broker is away and so many blocks wait for it that none should be added."""
        return self.is_away and self.mover.outbox >= MOST_OUTBOX

    def begin(self) -> None:
        """Start the chores, unless they run. Raises the error that has ended them, if any."""
        if self._failure is not None:
            raise self._failure
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="carrying")

    async def fill(self, more: int, within_s: float = FILL_S) -> None:
        """Ask for a round of chores, in which empty windows get `more` tasks beyond those that fill
        them, and wait up to `within_s` for its end. Returns at once if the broker is away."""
        if self.is_away:
            return
        asked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._asked.append(asked)
        self._more = max(self._more, more)
        self._wake.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await asked

    def wake(self) -> None:
        """Begin the next round of chores now, unless the broker is away."""
        if not self.is_away:
            self._wake.set()

    async def end(self) -> None:
        """Stop the chores. If the crawl is over, delete its queues, once the last blocks are
        acknowledged. This is done even if no chores ran: another process may have left queues."""
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
        """Stop the chores. What the broker has stays there. Waits up to `END_S` for calls that are
        under way, because cancelling a call ends its connection."""
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
        """Clear up, if the crawl is over. Returns the error if that fails."""
        try:
            await self._wind_up()
        except (StorageBusy, UnknownCrawl, ConfigError) as error:
            return error
        return None

    async def _wind_up(self) -> None:
        backlog = await self.mover.backlog()
        while _is_over(backlog) and (due_s := self.mover.receipts.due_in_s) is not None:
            self._is_over = True
            await asyncio.sleep(due_s)
            backlog = await self.mover.backlog()
            await self.mover.acknowledge(backlog)
        self._is_over = _is_over(backlog)
        if self._is_over:
            await self.mover.clear_up(backlog.crawl_id)
        await self.mover.note_requests(backlog.crawl_id)

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
                if not self._is_ending:  # What was asked for during this round has to wait, too.
                    self._wake.clear()
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
        backlog = await self.mover.backlog(more)
        if backlog.state is CrawlState.CANCELLED:
            return
        await self._publish(backlog)
        try:
            await self._fetch(backlog)
        except StorageBusy:
            self._see_published()  # Publishing may work even if fetching does not.
            raise
        if self._see_published() and self.is_away:
            await self.mover.check_carrier()  # Perhaps this round had nothing to ask of it.
            self._note_back()

    async def _fetch(self, backlog: Backlog) -> None:
        self.came += await self.mover.refill(backlog)
        await self.mover.acknowledge(backlog)
        await self._search.look(backlog)
        await self._ageing.look(backlog.crawl_id)
        await self.mover.note_requests(backlog.crawl_id)

    async def _publish(self, backlog: Backlog) -> None:
        """Begin to publish the outbox, and wait for that up to `publish_s`: if queues have to be
        created, it takes seconds, and fetching must not wait. Begins nothing while the chores are
        ending, as nobody would wait for it."""
        if backlog.outbox and self._publishing is None and not self._is_ending:
            self._publishing = asyncio.create_task(self.mover.publish(backlog.crawl_id))
            self._publishing.add_done_callback(self._wake_if_published)
            await asyncio.wait([self._publishing], timeout=self._publish_s)

    def _wake_if_published(self, publishing: asyncio.Task[bool]) -> None:
        if not publishing.cancelled() and not publishing.exception() and publishing.result():
            self._wake.set()

    def _see_published(self) -> bool:
        """Whether the last publishing has succeeded, or there was none. False: it still runs, or
        another process publishes. Raises its error."""
        if self._publishing is None:
            return True
        if not self._publishing.done():
            return False
        done, self._publishing = self._publishing, None
        return done.result()

    def _note_away(self, error: ShoalError) -> None:
        if not self.is_away:
            log.warning("waiting for the broker: %s", error)
        self.is_away = True

    def _note_back(self) -> None:
        log.info("the broker is back")
        self.is_away = False


def _is_over(backlog: Backlog) -> bool:
    """Whether the crawl has ended and no block is outside. Blocks that are still in the outbox are
    copies of those that have come back."""
    return backlog.state.over and not backlog.outside
