"""Describes the feeds of a crawl, one line for each."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.frontier.feeding import FeedPulse
from shoal.insight.figures import counted, duration
from shoal.insight.status import Snapshot

SHOWN = 10


def feed_lines(seen: Snapshot, now: float) -> Iterator[str]:
    """A line for each running feed: its counts, and why it takes no messages, if it does not."""
    for feed in seen.feeds[:SHOWN]:
        yield f"feed {feed.address}: {_told(feed, now)}"
    if len(seen.feeds) > SHOWN:
        yield f"and {counted(len(seen.feeds) - SHOWN, 'more feed')}"


def _told(feed: FeedPulse, now: float) -> str:
    parts = [f"{feed.added:,} added", f"{feed.rejected:,} rejected", f"{feed.waiting:,} wait"]
    if feed.last_at is not None:
        parts.append(f"last message {duration(max(now - feed.last_at, 0.0))} ago")
    if feed.held_up:
        parts.append(f"takes nothing: {feed.held_up}")
    return " · ".join(parts)
