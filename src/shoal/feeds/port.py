"""The port of sources, from which messages of other programs are taken."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol

import msgspec

from shoal.feeds.formats import Wire

REASON_KEPT = 500
"""How many characters of the reason are kept with a rejected message."""
REJECTED_KEPT = 10_000
"""How many rejected messages are kept on Redis: the newest. Other brokers keep them in a queue."""


class Message(msgspec.Struct, frozen=True):
    """A message that was taken. It is delivered again, to any client, unless it is done or
    rejected."""

    wire: Wire
    receipt: object
    """For `done` and `reject` of the source that it is from."""
    id: str = ""
    """The same in every delivery. Empty if neither broker nor sender gave it one."""


class Rejected(msgspec.Struct, frozen=True):
    """A message that is not let in, and why."""

    message: Message
    reason: str


class Source(Protocol):
    """A queue of messages. Any number of processes may take from it. Methods raise StorageBusy,
    StorageFailed and ConfigError as those of stores do."""

    shown: str
    """The address for people, without credentials."""

    @abstractmethod
    async def take(self, limit: int, wait_s: float) -> list[Message]:
        """Take up to `limit` messages. If there are none, wait up to about `wait_s` for one."""

    @abstractmethod
    async def done(self, messages: Sequence[Message]) -> None:
        """Acknowledge messages whose tasks the frontier has."""

    @abstractmethod
    async def reject(self, rejected: Sequence[Rejected]) -> None:
        """Put messages aside with the reasons, where people find them, and acknowledge them. On
        failure, some may be there already."""

    @abstractmethod
    async def waiting(self) -> int:
        """How many messages wait. This may include those that were taken and are not done."""

    @abstractmethod
    async def close(self) -> None:
        """Close the connection. Messages that are not done go to others."""


def printable(reason: str) -> str:
    """Make a reason safe for logs and headers: it may quote a foreign message."""
    text = reason[:REASON_KEPT]
    return "".join(char if char.isprintable() else "?" for char in text)
