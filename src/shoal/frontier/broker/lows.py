"""Which windows want blocks, as lows.lua says it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from shoal.frontier.values import CrawlState


class Low(NamedTuple):
    """A window that wants blocks."""

    host: str
    priority: int
    shared: int
    own: int
    wanted: int
    dry_s: float
    """For how long there has been nothing in it. Less than 0: there is something."""


class Lows(NamedTuple):
    """What lows.lua answers."""

    at: float
    """When it was asked, by the clock of the receipts."""
    state: CrawlState
    crawl_id: str
    life: str
    outbox: int
    outside: int
    windows: list[Low]


def lows_of(at: float, answer: Sequence[Any]) -> Lows:
    """The answer of the script, which was asked at this moment."""
    state, crawl_id, life, outbox, outside, *windows = answer
    return Lows(
        at,
        CrawlState(state.decode()),
        crawl_id.decode(),
        life.decode(),
        outbox,
        outside,
        [_low(*values) for values in windows],
    )


def _low(name: bytes, priority: int, shared: int, own: int, wanted: int, dry: int) -> Low:
    return Low(name.decode(), priority, shared, own, wanted, dry / 1e6)
