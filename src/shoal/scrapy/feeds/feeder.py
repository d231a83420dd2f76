"""The feeder: moves messages of a feed into the frontier while this process wants work."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from scrapy import Request

from shoal.errors import ShoalError, StorageError
from shoal.scrapy.feeds.feed import Feed, Message
from shoal.scrapy.feeds.messages import BadMessage

LOOK_EVERY_S = 0.2
"""How often a process that has enough to do checks whether that is still so."""
ASK_EVERY_S = 0.5
"""How often a process that wants work looks into a feed that was empty."""
CLOSING_S = 5.0
"""How long closing waits for a Redis that is away. Nothing is lost: see `Feed`."""

log = logging.getLogger("shoal")


class Taker(Protocol):
    """What a feeder needs of the scheduler."""

    @property
    def is_hungry(self) -> bool:
        """Whether this process has room for more than it gets."""

    async def add(self, requests: Sequence[Request], origin: str) -> Any:
        """Queue requests durably. The same requests from the same origin are queued once."""


class Feeder:
    """Takes messages of a feed for one spider and queues their requests."""

    def __init__(
        self,
        feed: Feed,
        scheduler: Taker,
        make_requests: Callable[[bytes], Iterable[Request]],
        *,
        batch: int,
    ) -> None:
        """`make_requests` may raise anything for a bad message."""
        self._feed = feed
        self._scheduler = scheduler
        self._make_requests = make_requests
        self._batch = batch
        self._in_hand: list[Message] = []
        self._moved: list[Message] = []
        self.last_message_at = time.monotonic()
        """When there was last anything in the feed."""

    async def run(self) -> None:
        """Move messages until cancelled. Raises ShoalError if the feed or the frontier cannot be
        used."""
        while True:
            if not self._scheduler.is_hungry:
                await asyncio.sleep(LOOK_EVERY_S)
            elif not await self._move_some():
                await asyncio.sleep(ASK_EVERY_S)

    async def close(self) -> None:
        """Give back what was not moved, so that others do not have to wait for it."""
        try:
            async with asyncio.timeout(CLOSING_S):
                await self._feed.done(self._moved)
                await self._feed.give_back(self._in_hand)
        except (ShoalError, TimeoutError) as error:
            log.warning("messages stay taken for a while: %s", error or "Redis does not answer")
        await self._feed.close()

    async def _move_some(self) -> bool:
        """Move a batch of messages. Returns whether there were any."""
        self._in_hand = await self._feed.take(self._batch)
        is_empty = not self._in_hand
        if not is_empty or await self._feed.waiting():
            self.last_message_at = time.monotonic()
        while self._in_hand:
            await self._move(self._in_hand[0])
            del self._in_hand[0]
        await self._feed.done(self._moved)
        self._moved = []
        return not is_empty

    async def _move(self, message: Message) -> None:
        """Move the requests of a message into the frontier, or reject the message."""
        reason = await self._why_not(message)
        if reason is None:
            self._moved.append(message)
        else:
            log.warning("a message was put aside in %s:rejected: %s", message.key, reason)
            await self._feed.reject(message, reason)

    async def _why_not(self, message: Message) -> str | None:
        """Queue the requests of a message. Returns the reason if that cannot be done, None if it
        was done."""
        try:
            requests = list(self._make_requests(message.data))
        except BadMessage as error:
            return str(error)
        except Exception as error:
            log.error("make_request_from_data() fails on a message", exc_info=True)
            return f"{type(error).__name__}: {error}"
        if not requests:
            log.debug("no request was made of a message of %r", message.key)
            return None
        try:
            await self._scheduler.add(requests, origin=message.id)
        except StorageError:
            raise
        except ShoalError as error:  # A request that cannot be serialised.
            return str(error)
        return None
