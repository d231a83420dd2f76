"""What may come in of what a carrier delivers: only blocks that the crawl itself has sent.

A lane may have others. Blocks of the crawl that was here before `--fresh` were left behind; and
whoever can write to the broker can put there what he likes. None of it may come in, and none of it
may stop what comes behind it: it is removed, and counted.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from shoal.drivers.redis.link import RedisLink
from shoal.frontier.broker.blocks import Travelling, travelling
from shoal.frontier.broker.carrier import Delivery
from shoal.frontier.broker.papers import Papers

EARLIER = "%d blocks of the crawl that was '%s' before were still with the broker, and are removed"
FOREIGN = (
    "lane %s has blocks that crawl '%s' has not sent: they are removed. Who else may write to the"
    " broker? `shoal status` counts them"
)

log = logging.getLogger("shoal")


class Customs:
    """Of one crawl."""

    def __init__(self, link: RedisLink, crawl: str, papers: Papers) -> None:
        self._link = link
        self._crawl = crawl
        self._papers = papers
        self._has_warned = False
        self._earlier = 0

    async def sort(
        self, prefix: str, deliveries: Sequence[Delivery]
    ) -> tuple[list[tuple[Delivery, Travelling]], list[Delivery]]:
        """Those that may come in, and the others."""
        blocks = [(delivery, travelling(delivery.block)) for delivery in deliveries]
        if any(block and block.head.crawl_id != self._papers.crawl_id for _, block in blocks):
            await self._papers.read()  # It may have been started over this moment.
        ours = list[tuple[Delivery, Travelling]]()
        earlier, foreign = list[Delivery](), list[Delivery]()
        for delivery, block in blocks:
            if block is None:
                foreign.append(delivery)
            elif block.head.crawl_id != self._papers.crawl_id:
                earlier.append(delivery)
            elif block.is_sealed_by(self._papers.key):
                ours.append((delivery, block))
            else:
                foreign.append(delivery)
        self._earlier += len(earlier)
        if foreign:
            await self._note_foreign(prefix, foreign)
        return ours, [*earlier, *foreign]

    def tell(self) -> None:
        """Say how many were of an earlier life, since it was last said."""
        if self._earlier:
            log.warning(EARLIER, self._earlier, self._crawl)
        self._earlier = 0

    async def _note_foreign(self, prefix: str, foreign: Sequence[Delivery]) -> None:
        if not self._has_warned:  # They may be many.
            log.warning(FOREIGN, foreign[0].block.lane, self._crawl)
        self._has_warned = True
        await self._link.command("INCRBY", f"{prefix}foreign", len(foreign))
