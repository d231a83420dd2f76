"""The carrier port: who keeps the blocks of tasks for which the window has no room.

    publish ─▶ WAITS ─fetch─▶ HELD ─ack─▶ gone
                 ▲              │
                 └── not acked ─┘   the process died, the connection broke, the time was over

A carrier promises little, so that every broker can: a block whose `publish` has returned is there
until it is acknowledged, whoever is killed meanwhile. It may come twice, and out of order. Whether
it was asked for, and what of it is new, the frontier knows by the block's id and its seen set.

Every method raises StorageBusy if trying again may help, StorageFailed if not, and ConfigError if
somebody has to set something up: a password, a right, a queue that was declared otherwise. After
StorageBusy a block may have been published all the same. Nothing is retried here, and a carrier
connects anew by itself with the next call.
"""

from __future__ import annotations

import secrets
from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol

import msgspec

MAX_ENTRIES = 64
"""Tasks in a block. More would make a lane of few tasks wait for many."""


class Block(msgspec.Struct, frozen=True):
    """Tasks of one lane that travel together. What an entry means only the frontier knows."""

    id: int
    """Random, of 64 bits: see `new_id`."""
    lane: str
    entries: list[bytes]


class Delivery(msgspec.Struct, frozen=True):
    """A block that was fetched. It comes again unless its receipt is acknowledged."""

    block: Block
    receipt: object
    """Only for `ack` of the carrier that it is from."""


class Carrier(Protocol):
    """Keeps blocks in lanes. A lane is known by its whole name: see `host_lane`, `shared_lane`."""

    @property
    @abstractmethod
    def most_bytes(self) -> int:
        """The entries of one block may have so many bytes together. What is larger stays home."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Which one it is, as people know it, without credentials: other names are others."""

    @property
    def is_open(self) -> bool:
        """Whether others may write to it who may not write to the frontier's Redis."""
        return True

    @property
    def kept_s(self) -> float | None:
        """For how long a block is kept. None: for ever."""
        return None

    @property
    def requests(self) -> int:
        """Those that were made so far and have a price, as they are billed."""
        return 0

    @property
    def request_price(self) -> float:
        """What one of them costs, in dollars. 0: they have no price."""
        return 0.0

    @abstractmethod
    async def declare(self, lane: str) -> None:
        """Make the lane, if it is not there. ConfigError if it is there as something else."""

    @abstractmethod
    async def publish(self, blocks: Sequence[Block]) -> None:
        """Keep blocks, each in its lane, which is made if it is gone. Back when all are safe."""

    @abstractmethod
    async def fetch(self, lane: str, limit: int) -> list[Delivery]:
        """At most so many of the blocks that wait, those that have waited longest first as far as
        the broker knows. None if there are none, or the lane is gone."""

    @abstractmethod
    async def ack(self, receipts: Sequence[object]) -> None:
        """Forget these blocks. A receipt that is worth nothing any more does nothing: its block
        comes again."""

    @abstractmethod
    async def count(self, lane: str) -> int:
        """The blocks that wait in the lane; 0 if it is gone. Some brokers count those that are
        held as well, and some only roughly."""

    @abstractmethod
    async def drop(self, lane: str) -> None:
        """Delete the lane and all that is in it. Not an error if it is gone."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of the connection. What is held comes again, to others."""


def new_id() -> int:
    """An id that no other block has, for all practical purposes."""
    return secrets.randbits(64)


def host_lane(crawl: str, host: str, priority: int) -> str:
    """The lane of one host and priority, as operators read it."""
    return f"shoal.{crawl}.host.{host}.{priority}"


def shared_lane(crawl: str, number: int) -> str:
    """A lane that many hosts share."""
    return f"shoal.{crawl}.shared.{number}"
