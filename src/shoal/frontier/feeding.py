"""What those who feed crawls say of themselves: a note each, beside the crawls, while they run.

feeds    CRAWL/NUMBER -> FeedPulse    of one process and one queue
"""

from __future__ import annotations

import msgspec

from shoal.frontier.board import Notes, read_all

FEEDS = "feeds"
SILENT_S = 60.0
"""Whoever was not heard of for so long is not shown: it was killed, or its machine is gone."""
FORGOTTEN_S = 86400.0
"""After so long its note is deleted, by the next one that begins."""


class FeedPulse(msgspec.Struct, frozen=True, kw_only=True):
    """One feed at work."""

    crawl: str
    address: str
    """Without its password."""
    at: float
    """When it has said so."""
    messages: int = 0
    added: int = 0
    known: int = 0
    rejected: int = 0
    waiting: int = 0
    """Messages that wait in the queue."""
    last_at: float | None = None
    """When a message has come."""
    held_up: str = ""
    """Why nothing is taken. Empty: it is."""


async def feeds_of(notes: Notes, crawl: str, now: float) -> list[FeedPulse]:
    """The feeds of a crawl that are at work."""
    pulses = (await read_all(notes, FEEDS, FeedPulse)).values()
    return [pulse for pulse in pulses if pulse.crawl == crawl and now - pulse.at < SILENT_S]


async def forget_silent_feeds(notes: Notes, now: float) -> None:
    """Delete notes of those who have ended without a word."""
    for name, pulse in (await read_all(notes, FEEDS, FeedPulse)).items():
        if now - pulse.at > FORGOTTEN_S:
            await notes.write(FEEDS, name, None)
