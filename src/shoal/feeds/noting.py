"""Writes what a feed does to a note in the frontier, for `status`, as long as the feed runs."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import msgspec
from msgspec.structs import replace

from shoal.core.addresses import masked
from shoal.errors import StorageError
from shoal.feeds.feeder import Feeder
from shoal.frontier.board import Notes
from shoal.frontier.feeding import FEEDS, FeedPulse, forget_silent_feeds

LOOK_EVERY_S = 1.0
"""How often the note is written while its content changes."""
EVERY_S = 15.0
"""How often it is written while nothing changes, to show that the feed is alive."""


@asynccontextmanager
async def noted(notes: Notes, crawl: str, address: str, feeder: Feeder) -> AsyncIterator[None]:
    """Keep the note of a feed up to date inside the `with` block, and delete it at the end. Errors
    of the frontier are ignored, so they do not stop the feed."""
    name = f"{crawl}/{secrets.token_hex(4)}"
    noting = asyncio.create_task(_note(notes, name, crawl, masked(address), feeder))
    try:
        yield
    finally:
        noting.cancel()
        await asyncio.gather(noting, return_exceptions=True)
        with suppress(StorageError):
            await notes.write(FEEDS, name, None)


async def _note(notes: Notes, name: str, crawl: str, shown: str, feeder: Feeder) -> None:
    with suppress(StorageError):
        await forget_silent_feeds(notes, time.time())
    last = None
    while True:
        pulse = _pulse(crawl, shown, feeder)
        if last is None or pulse.at - last.at > EVERY_S or replace(pulse, at=last.at) != last:
            last = pulse
            with suppress(StorageError):
                await notes.write(FEEDS, name, msgspec.json.encode(pulse))
        await asyncio.sleep(LOOK_EVERY_S)


def _pulse(crawl: str, shown: str, feeder: Feeder) -> FeedPulse:
    fed = feeder.fed
    return FeedPulse(
        crawl=crawl,
        address=shown,
        at=time.time(),
        messages=fed.messages,
        added=fed.added,
        known=fed.known,
        rejected=fed.rejected,
        waiting=fed.waiting,
        last_at=feeder.last_at,
        held_up=feeder.held_up,
    )
