"""Pulses of feeds: while a process feeds a crawl from a queue, it keeps a note about that.

feeds    CRAWL/NUMBER -> FeedPulse    one per process and queue
"""

from __future__ import annotations

import msgspec

from shoal.frontier.board import Notes, read_all

FEEDS = "feeds"
SILENT_S = 60.0
"""A feed that was silent for longer is not shown: it was killed, or its machine is gone."""
FORGOTTEN_S = 86400.0
"""The note of a feed that was silent for longer is deleted by the next feed that begins."""


class FeedPulse(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one feed at work."""

    crawl: str
    address: str
    """The address of the queue, without its password."""
    at: float
    """When the pulse was written."""
    messages: int = 0
    added: int = 0
    known: int = 0
    rejected: int = 0
    waiting: int = 0
    """Messages that wait in the queue."""
    last_at: float | None = None
    """When the last message came."""
    held_up: str = ""
    """Why no messages are taken. Empty: they are."""


async def feeds_of(notes: Notes, crawl: str, now: float) -> list[FeedPulse]:
    """The feeds of a crawl that are at work."""
    pulses = (await read_all(notes, FEEDS, FeedPulse)).values()
    return [pulse for pulse in pulses if pulse.crawl == crawl and now - pulse.at < SILENT_S]


async def forget_silent_feeds(notes: Notes, now: float) -> None:
    """Delete the notes of feeds that ended without deleting them."""
    for name, pulse in (await read_all(notes, FEEDS, FeedPulse)).items():
        if now - pulse.at > FORGOTTEN_S:
            await notes.write(FEEDS, name, None)
