"""What leaves and what comes hold each other up in no way, and nothing outlives the chores."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import AsyncMock, Mock

from shoal.errors import StorageBusy
from shoal.frontier.broker.chores import Chores
from shoal.frontier.broker.lows import Lows
from shoal.frontier.values import CrawlState
from support.until import in_time, until

LOWS = Lows(0.0, CrawlState.RUNNING, "ab12", "life", 1, 1, [])


class Freight:
    """One of which a test says what it does."""

    def __init__(self) -> None:
        self.outbox = 0
        self.published = 0
        self.refill = AsyncMock(return_value=0)
        self.acknowledge = self.note_requests = AsyncMock()

    async def lows(self, more: int = 0) -> Lows:
        return LOWS

    async def publish(self, crawl_id: str) -> None:
        self.published += 1


def chores(freight: Any) -> Chores:
    return Chores(freight, Mock(look=AsyncMock()), Mock(look=AsyncMock()))


async def until_published(freight: Freight, times: int) -> None:
    await until("blocks that leave", lambda: freight.published >= times)


async def test_blocks_leave_again_and_again_while_none_can_be_fetched() -> None:
    freight = Freight()
    freight.refill.side_effect = StorageBusy("a queue has no leader")
    carrying = chores(freight)
    carrying.begin()
    await until_published(freight, 3)
    assert carrying.is_away
    freight.refill.side_effect = None
    await until("the broker to be back", lambda: not carrying.is_away)
    await carrying.stop()


async def test_who_is_told_to_end_in_the_middle_of_a_round_publishes_nothing_more() -> None:
    freight = Freight()
    asked, answer = asyncio.Event(), asyncio.Event()

    async def slow_lows(more: int = 0) -> Lows:
        asked.set()
        await in_time("the end to be wanted", answer.wait())
        return LOWS

    freight.lows = slow_lows  # type: ignore[method-assign]
    carrying = chores(freight)
    carrying.begin()
    await in_time("a round", asked.wait())
    stopping = asyncio.create_task(carrying.stop())
    await asyncio.sleep(0)
    answer.set()
    await stopping
    assert freight.published == 0
