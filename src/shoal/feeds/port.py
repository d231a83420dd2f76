"""The port of sources: where messages of others come from."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol

import msgspec

from shoal.feeds.formats import Wire

REASON_KEPT = 500
"""Characters of the reason that are kept with a rejected message."""
REJECTED_KEPT = 10_000
"""Rejected messages that are kept where we are the ones who throw away: the newest."""


class Message(msgspec.Struct, frozen=True):
    """A message that is in our hands. It comes again, to whoever asks, unless it is done or
    rejected."""

    wire: Wire
    receipt: object
    """Only for the source that it is from."""
    id: str = ""
    """Stays the same however often it comes. Empty if its broker and its writer gave it none."""


class Source(Protocol):
    """Any number of processes may take from one source. Methods raise errors as stores do."""

    shown: str
    """Where it is: for people."""

    @abstractmethod
    async def take(self, limit: int, wait_s: float) -> list[Message]:
        """At most so many messages. If there are none, waits about so long for one."""

    @abstractmethod
    async def done(self, messages: Sequence[Message]) -> None:
        """Forget messages whose tasks the frontier has."""

    @abstractmethod
    async def reject(self, message: Message, reason: str) -> None:
        """Put a message aside, with the reason, where people find it; then forget it."""

    @abstractmethod
    async def waiting(self) -> int:
        """How many messages wait. Those in somebody's hands may be among them."""

    @abstractmethod
    async def close(self) -> None:
        """Let go. What is in our hands goes to others."""


def printable(reason: str) -> str:
    """A reason that may quote strangers, for logs and headers."""
    text = reason[:REASON_KEPT]
    return "".join(char if char.isprintable() else "?" for char in text)
