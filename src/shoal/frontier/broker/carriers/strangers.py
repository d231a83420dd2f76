"""Messages in a lane that are no blocks."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from shoal.frontier.broker.carrier import Delivery
from shoal.frontier.broker.encoding import NoBlock, decode

log = logging.getLogger("shoal")


def sorted_out(
    found: Iterable[tuple[bytes, object]], lane: str, most_bytes: int
) -> tuple[list[Delivery], list[object]]:
    """The blocks among messages and their receipts, and the receipts of those that are none: they
    would come for ever. A lane is ours alone, so who puts something else there has erred."""
    deliveries, strangers = list[Delivery](), list[object]()
    for data, receipt in found:
        try:
            deliveries.append(Delivery(decode(data, lane, most_bytes), receipt))
        except NoBlock as error:
            log.warning("a message in %s is no block, and is removed: %s", lane, error)
            strangers.append(receipt)
    return deliveries, strangers
