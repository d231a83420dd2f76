"""Separates blocks from other messages in a lane."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from shoal.frontier.broker.carrier import Delivery
from shoal.frontier.broker.encoding import NoBlock, decode

log = logging.getLogger("shoal")


def sorted_out(
    found: Iterable[tuple[bytes, object]], lane: str, most_bytes: int
) -> tuple[list[Delivery], list[object]]:
    """Split messages, given with their receipts, into blocks and receipts of other messages.

    The caller removes the others, or they would be delivered for ever. Lanes are for Shoal alone,
    so whoever wrote them did so by mistake.
    """
    deliveries, strangers = list[Delivery](), list[object]()
    for data, receipt in found:
        try:
            deliveries.append(Delivery(decode(data, lane, most_bytes), receipt))
        except NoBlock as error:
            log.warning("a message in %s is no block, and is removed: %s", lane, error)
            strangers.append(receipt)
    return deliveries, strangers
