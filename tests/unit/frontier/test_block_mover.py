"""Blocks that were fetched from a carrier and could not be admitted are not forgotten."""

from __future__ import annotations

from collections import deque
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest

from shoal.errors import StorageBusy
from shoal.frontier.broker.backlog import Backlog, LowWindow
from shoal.frontier.broker.block_mover import BlockMover
from shoal.frontier.broker.blocks import from_outbox
from shoal.frontier.broker.carrier import Block, Delivery
from shoal.frontier.broker.receipts import Receipts
from shoal.frontier.values import CrawlState
from support.frontiers import FakeClock

HEAD = b"ab12 1 0 a.example:80"
ENTRY = b"fingerpr\0\0task one"
OURS = from_outbox(
    "shop", b"\xff" * 8 + len(HEAD).to_bytes(2) + HEAD + len(ENTRY).to_bytes(4) + ENTRY
)
JUNK = Block(7, OURS.lane, [b"no block"])
BACKLOG = Backlog(
    0.0, CrawlState.RUNNING, "ab12", "life", 0, 1, [LowWindow("a.example:80", 0, 0, 1, 1, 0.0)]
)
ADMITTED = [b"running", b"life", 1]


class Carriage:
    """A mover whose Redis and carrier fail when the test says so."""

    def __init__(self, *blocks: Block) -> None:
        self.clock = FakeClock()
        self.receipts = Receipts(5.0, self.clock)
        self.shard = Mock(crawl="shop", base="shoal:{shop}:", run=AsyncMock())
        waiting = deque([[Delivery(block, f"receipt {block.id}") for block in blocks]])
        self.carrier = Mock(ack=AsyncMock())
        self.carrier.fetch = AsyncMock(side_effect=lambda *_: waiting.popleft() if waiting else [])
        record = Mock(crawl_id="ab12", key=b"", read=AsyncMock())
        link: Any = Mock(command=AsyncMock())
        self.mover = BlockMover(link, self.shard, self.carrier, record, self.receipts, Mock())

    @property
    def acknowledged(self) -> list[object]:
        return [receipt for call in self.carrier.ack.await_args_list for receipt in call.args[0]]

    async def round(self) -> None:
        backlog = BACKLOG._replace(at=self.receipts.now)
        await self.mover.refill(backlog)
        await self.mover.acknowledge(backlog)


async def test_a_redis_that_is_away_when_blocks_have_come() -> None:
    carriage = Carriage(OURS)
    carriage.shard.run.side_effect = [StorageBusy("restarting"), ADMITTED]
    with pytest.raises(StorageBusy):
        await carriage.round()
    await carriage.round()
    assert carriage.shard.run.await_count == 2, "nobody else would ever get it"
    carriage.clock.now += 6
    await carriage.round()
    assert carriage.acknowledged == [f"receipt {OURS.id}"]


async def test_what_has_come_in_is_acknowledged_once_although_junk_could_not_be() -> None:
    carriage = Carriage(OURS, JUNK)
    carriage.shard.run.side_effect = [ADMITTED]
    carriage.carrier.ack.side_effect = [StorageBusy("the connection was closed"), None, None, None]
    with pytest.raises(StorageBusy):
        await carriage.round()
    carriage.carrier.ack.reset_mock()
    await carriage.round()
    carriage.clock.now += 6
    await carriage.round()
    assert carriage.acknowledged == ["receipt 7", f"receipt {OURS.id}"]
    assert len(carriage.receipts) == 0
