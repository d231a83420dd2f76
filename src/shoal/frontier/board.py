"""What coordinators share through the frontier: who leads, and small notes by topic.

One coordinator leads at a time, for a numbered term. A leader writes notes in the name of its term,
and a note of an earlier term is refused: a leader that was suspended, and wakes up when another one
leads, changes nothing. Anything else that it may still do must be harmless when it is done twice.
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
    """Another coordinator leads by now, or may."""

    def __init__(self, reason: str = "another coordinator leads by now") -> None:
        super().__init__(reason)


class Leader(msgspec.Struct, frozen=True):
    """Which coordinator leads, and in which term. Only the pair is unique: a server that takes over
    from another may not know the last term, and give its number to another holder."""

    holder: str
    term: int


class Notes(ABC):
    """Notes and leadership, kept beside the crawls of one frontier. Raises StorageBusy and
    StorageFailed as the frontier does."""

    @abstractmethod
    async def lead(self, holder: str, ttl_s: float) -> Leader | None:
        """Lead for `ttl_s` from now, or go on leading. The term stays the same until another holder
        has led. None while another leads: if that one is silent, for at most `ttl_s`, even if the
        clock was changed."""

    @abstractmethod
    async def resign(self, holder: str) -> None:
        """Stop leading. Does nothing if another holder leads."""

    @abstractmethod
    async def leader(self) -> Leader | None:
        """The coordinator that leads now, if any."""

    @abstractmethod
    async def write(
        self, topic: str, name: str, text: bytes | None, leader: Leader | None = None
    ) -> None:
        """Write a note, or delete it (`text` None). With `leader`: raises Deposed, and changes
        nothing, if its term is over. Without, it is always written: that is for what people ask
        for."""

    @abstractmethod
    async def swap(self, topic: str, name: str, known: bytes | None, text: bytes) -> bool:
        """Replace a note if its text is still `known` (None: there is no note). Returns False, and
        changes nothing, if it is not. Of several callers that have read the same text, only one
        succeeds."""

    @abstractmethod
    async def read(self, topic: str, name: str) -> bytes | None:
        """The text of one note. None: there is no note of this name."""

    @abstractmethod
    async def all(self, topic: str) -> dict[str, bytes]:
        """The texts of all notes on a topic by name, sorted by name."""


T = TypeVar("T")


async def read(notes: Notes, topic: str, name: str, form: type[T]) -> T | None:
    """Read and decode one note. None: there is no such note, or it is not of this form."""
    text = await notes.read(topic, name)
    return decoded(topic, name, text, form) if text else None


async def read_all(notes: Notes, topic: str, form: type[T]) -> dict[str, T]:
    """Read and decode all notes on a topic that are of this form, by name."""
    read = {
        name: decoded(topic, name, text, form) for name, text in (await notes.all(topic)).items()
    }
    return {name: value for name, value in read.items() if value is not None}


def decoded(topic: str, name: str, text: bytes, form: type[T]) -> T | None:
    """Decode the text of a note. None, with a warning, if it is not of this form: a note that
    cannot be read does not keep the others from being read."""
    try:
        return msgspec.json.decode(text, type=form)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        _say_once(f"note {name[:100]!a} of {topic[:100]!a} is left alone: {str(error)!a}")
        return None


_say_once = lru_cache(maxsize=1000)(log.warning)
"""Logs each warning once: notes are read twice a second."""
