"""What coordinators share through the frontier: who leads, and small notes on shelves.

One coordinator leads at a time, for a term with a number. A note is written in the name of a term,
and is refused once another has begun: a leader that was stopped, and wakes up when somebody else
leads, changes nothing. What it may still do beside notes must be harmless when it is done twice.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import msgspec

from shoal.errors import ShoalError


class Deposed(ShoalError):
    """Somebody else leads by now, or may."""

    def __init__(self, reason: str = "another coordinator leads by now") -> None:
        super().__init__(reason)


class Leader(msgspec.Struct, frozen=True):
    """Who leads."""

    holder: str
    term: int


class Notes(ABC):
    """Kept beside the crawls of one frontier. Raises StorageBusy and StorageFailed as it does."""

    @abstractmethod
    async def lead(self, holder: str, ttl_s: float) -> int | None:
        """Lead for so long from now, or go on leading. Returns the term: the same one for as long
        as nobody else led in between. None while another leads."""

    @abstractmethod
    async def resign(self, holder: str) -> None:
        """Lead no longer. Nothing happens if somebody else does."""

    @abstractmethod
    async def leader(self) -> Leader | None:
        """Who leads now."""

    @abstractmethod
    async def write(
        self, shelf: str, name: str, text: bytes | None, term: int | None = None
    ) -> None:
        """Write a note, or strike it out (None). With a term: raises Deposed, and changes nothing,
        if that is over. Without one it is always written: what people wish for."""

    @abstractmethod
    async def read(self, shelf: str, name: str) -> bytes | None:
        """One note."""

    @abstractmethod
    async def all(self, shelf: str) -> dict[str, bytes]:
        """The notes of a shelf, in the order of their names."""
