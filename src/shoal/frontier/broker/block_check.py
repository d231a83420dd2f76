"""Checks what a carrier delivers: only blocks that the crawl itself has sent are accepted.

A lane may also hold blocks of an earlier crawl of this name, left behind by `--fresh`, and anything
that others with access to the broker have written. These messages are rejected and removed, so
that they do not block those behind them. Those of strangers are counted.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from shoal.drivers.redis.link import RedisLink
from shoal.frontier.broker.blocks import ReturnedBlock, read_block
from shoal.frontier.broker.carrier import Delivery
from shoal.frontier.broker.carrier_record import CarrierRecord

EARLIER = "%d blocks of the crawl that was '%s' before were still with the broker, and are removed"
FOREIGN = (
    "lane %s has blocks that crawl '%s' has not sent: they are removed. Who else may write to the"
    " broker? `shoal status` counts them"
)

log = logging.getLogger("shoal")


class BlockCheck:
    """Checks the deliveries for one crawl."""

    def __init__(self, link: RedisLink, crawl: str, record: CarrierRecord) -> None:
        self._link = link
        self._crawl = crawl
        self._record = record
        self._has_warned = False
        self._earlier = 0

    async def sort(
        self, prefix: str, deliveries: Sequence[Delivery]
    ) -> tuple[list[tuple[Delivery, ReturnedBlock]], list[Delivery]]:
        """Split deliveries into those to accept, with their blocks, and those to remove."""
        blocks = [(delivery, read_block(delivery.block)) for delivery in deliveries]
        if any(block and block.head.crawl_id != self._record.crawl_id for _, block in blocks):
            await self._record.read()  # Our own crawl may just have been started over.
        ours = list[tuple[Delivery, ReturnedBlock]]()
        earlier, foreign = list[Delivery](), list[Delivery]()
        for delivery, block in blocks:
            if block is None:
                foreign.append(delivery)
            elif block.head.crawl_id != self._record.crawl_id:
                earlier.append(delivery)
            elif block.is_sealed_by(self._record.key):
                ours.append((delivery, block))
            else:
                foreign.append(delivery)
        self._earlier += len(earlier)
        if foreign:
            await self._note_foreign(prefix, foreign)
        return ours, [*earlier, *foreign]

    def log_earlier(self) -> None:
        """Log how many blocks of an earlier crawl were found since the last call."""
        if self._earlier:
            log.warning(EARLIER, self._earlier, self._crawl)
        self._earlier = 0

    async def _note_foreign(self, prefix: str, foreign: Sequence[Delivery]) -> None:
        if not self._has_warned:  # Once, as there may be many.
            log.warning(FOREIGN, foreign[0].block.lane, self._crawl)
        self._has_warned = True
        await self._link.command("INCRBY", f"{prefix}foreign", len(foreign))
