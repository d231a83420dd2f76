"""The port of publishers, which send messages to other programs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

import msgspec

from shoal.feeds.formats import Wire


class Channel(StrEnum):
    """What a message is about. Each channel has its own queue, so those who read items get nothing
    else."""

    ITEMS = "items"
    DEAD = "dead"
    FINISHED = "finished"


class Message(msgspec.Struct, frozen=True):
    """A message to publish, in the format of its consumers."""

    channel: Channel
    id: str
    """The same each time the message is published."""
    wire: Wire


class Publisher(Protocol):
    """Publishes the messages of one crawl to a broker. Methods raise StorageBusy, StorageFailed and
    ConfigError as those of stores do."""

    shown: str
    """The address for people, without credentials."""

    @abstractmethod
    async def check(self, *, makes: bool = True) -> None:
        """Check, before work begins, that messages can be published. With `makes`, create the
        queues that Shoal has to create itself: there are none to create before there is a crawl.
        Raises ConfigError."""

    @abstractmethod
    def too_large(self, message: Message) -> str:
        """Why a message is too large for any broker of this kind. Empty: it is not."""

    @abstractmethod
    async def publish(self, messages: Sequence[Message]) -> None:
        """Publish messages. Returns when the broker has confirmed all of them. On failure, some may
        have been published."""

    @abstractmethod
    async def close(self) -> None:
        """Close the connection. Not an error if the broker is gone."""


def larger_than(most: int, size: int) -> str:
    """Why a message of this size cannot be published. Empty: it can."""
    return f"too large to be published: {size:,} bytes of {most:,}" if size > most else ""
