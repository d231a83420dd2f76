"""Reads the answer of lows.lua: which windows need blocks, and how many blocks are outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from shoal.frontier.values import CrawlState


class LowWindow(NamedTuple):
    """A window that needs blocks."""

    host: str
    priority: int
    shared: int
    """Blocks in the lane that it shares with other windows."""
    own: int
    """Blocks in a lane of its own."""
    wanted: int
    """Blocks to fetch."""
    dry_s: float
    """For how long the window has been empty. Negative: it is not."""


class Backlog(NamedTuple):
    """The state of a crawl, its blocks and its low windows, at one moment."""

    at: float
    """The moment just before the script was called, by the clock of the receipts."""
    state: CrawlState
    crawl_id: str
    life: str
    """Identifies the server's life: it changes when the server is restarted or replaced, and may
    have lost its last moments."""
    outbox: int
    """Blocks that are not published yet."""
    outside: int
    """Blocks that were sent out and have not come back, including those in the outbox."""
    windows: list[LowWindow]
    """The windows that need blocks. Empty ones come first."""


def read_backlog(at: float, answer: Sequence[Any]) -> Backlog:
    """Read the answer of the script, which was called at the moment `at`."""
    state, crawl_id, life, outbox, outside, *windows = answer
    return Backlog(
        at,
        CrawlState(state.decode()),
        crawl_id.decode(),
        life.decode(),
        outbox,
        outside,
        [_low(*values) for values in windows],
    )


def _low(name: bytes, priority: int, shared: int, own: int, wanted: int, dry: int) -> LowWindow:
    return LowWindow(name.decode(), priority, shared, own, wanted, dry / 1e6)
