"""What coordinators share through the frontier: who leads, and small notes on shelves.

One coordinator leads at a time, for a term with a number. A note is written in the name of a leader
and its term, and is refused once another has begun: a leader that was stopped, and wakes up when
somebody else leads, changes nothing. What it may still do beside notes must be harmless when it is
done twice.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from functools import lru_cache
from typing import TypeVar

import msgspec

from shoal.errors import ShoalError

log = logging.getLogger("shoal")


class Deposed(ShoalError):
    """Somebody else leads by now, or may."""

    def __init__(self, reason: str = "another coordinator leads by now") -> None:
        super().__init__(reason)


class Leader(msgspec.Struct, frozen=True):
    """Who leads, and in which term. Only both together are never used again: a server that takes
    over from another may not know of the last term, and give its number to somebody else."""

    holder: str
    term: int


class Notes(ABC):
    """Kept beside the crawls of one frontier. Raises StorageBusy and StorageFailed as it does."""

    @abstractmethod
    async def lead(self, holder: str, ttl_s: float) -> Leader | None:
        """Lead for so long from now, or go on leading. The term is the same one for as long as
        nobody else led in between. None while another leads: without a word of it for at most
        `ttl_s`, whatever the clock did."""

    @abstractmethod
    async def resign(self, holder: str) -> None:
        """Lead no longer. Nothing happens if somebody else does."""

    @abstractmethod
    async def leader(self) -> Leader | None:
        """Who leads now."""

    @abstractmethod
    async def write(
        self, shelf: str, name: str, text: bytes | None, leader: Leader | None = None
    ) -> None:
        """Write a note, or strike it out (None). In a leader's name: raises Deposed, and changes
        nothing, if its term is over. Else it is always written: what people wish for."""

    @abstractmethod
    async def read(self, shelf: str, name: str) -> bytes | None:
        """One note."""

    @abstractmethod
    async def all(self, shelf: str) -> dict[str, bytes]:
        """The notes of a shelf, in the order of their names."""


T = TypeVar("T")


async def read(notes: Notes, shelf: str, name: str, form: type[T]) -> T | None:
    """One note."""
    text = await notes.read(shelf, name)
    return _decoded(shelf, name, text, form) if text else None


async def read_all(notes: Notes, shelf: str, form: type[T]) -> dict[str, T]:
    """All notes of a shelf that are of this form."""
    read = {
        name: _decoded(shelf, name, text, form) for name, text in (await notes.all(shelf)).items()
    }
    return {name: value for name, value in read.items() if value is not None}


def _decoded(shelf: str, name: str, text: bytes, form: type[T]) -> T | None:
    """None for what is no such note: whatever somebody leaves there, the others are read."""
    try:
        return msgspec.json.decode(text, type=form)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        _say_once(f"note {name[:100]!a} of {shelf[:100]!a} is left alone: {str(error)!a}")
        return None


_say_once = lru_cache(maxsize=1000)(log.warning)
"""Notes are read twice a second."""
