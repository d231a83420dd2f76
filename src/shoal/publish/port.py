"""The port of publishers: where messages for others go."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

import msgspec

from shoal.feeds.formats import Wire


class Channel(StrEnum):
    """What a message is about. Each has a place of its own: who reads items sees nothing else."""

    ITEMS = "items"
    DEAD = "dead"
    FINISHED = "finished"


class Message(msgspec.Struct, frozen=True):
    """A message to publish, in somebody's format."""

    channel: Channel
    id: str
    """The same however often it is published."""
    wire: Wire


class Publisher(Protocol):
    """A broker, seen from one crawl. Methods raise errors as stores do."""

    shown: str
    """Where it is: for people."""

    @abstractmethod
    async def check(self, *, makes: bool = True) -> None:
        """Look whether messages can be published, before work begins, and make the places that are
        ours to make, unless there is no crawl yet. Raises ConfigError."""

    @abstractmethod
    def too_large(self, message: Message) -> str:
        """Why no broker of this kind takes a message. Empty: it does."""

    @abstractmethod
    async def publish(self, messages: Sequence[Message]) -> None:
        """Back when the broker has confirmed all of them. If this fails, it may have some."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of the connection. Not an error if the broker is gone."""


def larger_than(most: int, size: int) -> str:
    """Why something of this size is not published, if it is not."""
    return f"too large to be published: {size:,} bytes of {most:,}" if size > most else ""
