"""Publishing and fetching do not hold each other up, and no task outlives the chores."""

from __future__ import annotations

import asyncio
import logging
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest

from shoal.errors import StorageBusy
from shoal.frontier.broker.backlog import Backlog
from shoal.frontier.broker.chores import EVERY_S, Chores
from shoal.frontier.values import CrawlState
from support.until import in_time, until

BACKLOG = Backlog(0.0, CrawlState.RUNNING, "ab12", "life", 1, 1, [])


class BlockMover:
    """A mover with calls that a test can replace."""

    def __init__(self) -> None:
        self.outbox = 0
        self.published = 0
        self.refill = AsyncMock(return_value=0)
        self.acknowledge = self.note_requests = AsyncMock()
        self.check_carrier = AsyncMock()

    async def backlog(self, more: int = 0) -> Backlog:
        return BACKLOG

    async def publish(self, crawl_id: str) -> bool:
        self.published += 1
        return True


def chores(mover: Any) -> Chores:
    return Chores(mover, Mock(look=AsyncMock()), Mock(look=AsyncMock()))


async def until_published(mover: BlockMover, times: int) -> None:
    await until("blocks that leave", lambda: mover.published >= times)


async def test_blocks_leave_again_and_again_while_none_can_be_fetched() -> None:
    mover = BlockMover()
    mover.refill.side_effect = StorageBusy("a queue has no leader")
    carrying = chores(mover)
    carrying.begin()
    await until_published(mover, 3)
    assert carrying.is_away
    mover.refill.side_effect = None
    await until("the broker to be back", lambda: not carrying.is_away)
    await carrying.stop()


async def test_who_is_told_to_end_in_the_middle_of_a_round_publishes_nothing_more() -> None:
    mover = BlockMover()
    asked, answer = asyncio.Event(), asyncio.Event()

    async def slow_backlog(more: int = 0) -> Backlog:
        asked.set()
        await in_time("the end to be wanted", answer.wait())
        return BACKLOG

    mover.backlog = slow_backlog  # type: ignore[method-assign]
    carrying = chores(mover)
    carrying.begin()
    await in_time("a round", asked.wait())
    stopping = asyncio.create_task(carrying.stop())
    await asyncio.sleep(0)
    answer.set()
    await stopping
    assert mover.published == 0


async def test_a_round_without_a_call_to_the_broker_does_not_mean_that_it_is_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Another process publishes, or there is nothing to publish and to fetch."""
    caplog.set_level(logging.INFO)
    mover = BlockMover()
    answers = [StorageBusy("refused"), False, True]
    mover.publish = AsyncMock(side_effect=lambda _: next_of(answers))  # type: ignore[method-assign]
    mover.check_carrier.side_effect = StorageBusy("refused")
    carrying = chores(mover)
    carrying.begin()
    await until("calls that fail", lambda: mover.check_carrier.await_count >= 2)
    assert carrying.is_away
    mover.check_carrier.side_effect = None
    await until("the broker to be back", lambda: not carrying.is_away)
    await carrying.stop()
    told = [record.getMessage() for record in caplog.records]
    assert told == ["waiting for the broker: refused", "the broker is back"]


def next_of(answers: list[Any]) -> Any:
    """The next answer. The last one stays."""
    answer = answers.pop(0) if len(answers) > 1 else answers[0]
    if isinstance(answer, Exception):
        raise answer
    return answer


@pytest.mark.parametrize("answer", [StorageBusy("refused"), False])
async def test_what_could_not_be_published_waits_for_the_next_round(answer: Any) -> None:
    """Rounds without pauses would only keep Redis busy."""
    mover = BlockMover()
    rounds = list[float]()

    async def publish(crawl_id: str) -> bool:
        rounds.append(asyncio.get_running_loop().time())
        return bool(next_of([answer]))

    mover.publish = publish  # type: ignore[method-assign]
    carrying = chores(mover)
    carrying.begin()
    await until("two rounds", lambda: len(rounds) >= 2)
    assert rounds[1] - rounds[0] >= EVERY_S * 0.9
    await carrying.stop()
