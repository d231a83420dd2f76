"""What coordinators share through the frontier: who leads, and small notes by topic.

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
        self, topic: str, name: str, text: bytes | None, leader: Leader | None = None
    ) -> None:
        """Write a note, or delete it (None). In a leader's name: raises Deposed, and changes
        nothing, if its term is over. Without one it is always written: what people ask for."""

    @abstractmethod
    async def swap(self, topic: str, name: str, known: bytes | None, text: bytes) -> bool:
        """Write a note if what is there is still what was read (None: no note). False: it is not,
        and nothing has changed. Of several that have read the same, one writes."""

    @abstractmethod
    async def read(self, topic: str, name: str) -> bytes | None:
        """The text of one note. None: there is none of this name."""

    @abstractmethod
    async def all(self, topic: str) -> dict[str, bytes]:
        """The texts of all notes on a topic by their names, in the order of these."""


T = TypeVar("T")


async def read(notes: Notes, topic: str, name: str, form: type[T]) -> T | None:
    """One note, decoded. None: there is none, or it is not of this form."""
    text = await notes.read(topic, name)
    return decoded(topic, name, text, form) if text else None


async def read_all(notes: Notes, topic: str, form: type[T]) -> dict[str, T]:
    """All notes on a topic that are of this form, decoded, by their names."""
    read = {
        name: decoded(topic, name, text, form) for name, text in (await notes.all(topic)).items()
    }
    return {name: value for name, value in read.items() if value is not None}


def decoded(topic: str, name: str, text: bytes, form: type[T]) -> T | None:
    """A note from its text. None if it is not of this form: whatever somebody leaves there, the
    others are read."""
    try:
        return msgspec.json.decode(text, type=form)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        _say_once(f"note {name[:100]!a} of {topic[:100]!a} is left alone: {str(error)!a}")
        return None


_say_once = lru_cache(maxsize=1000)(log.warning)
"""Notes are read twice a second."""
