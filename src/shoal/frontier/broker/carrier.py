"""The carrier port: keeps the blocks of tasks that do not fit into the windows on Redis.

    publish ─▶ WAITS ─fetch─▶ HELD ─ack─▶ gone
                 ▲              │
                 └── not acked ─┘   the process died, the connection broke, the time was over

A carrier promises only what every broker can: once `publish` has returned, a block is kept until it
is acknowledged, whichever process is killed meanwhile. A block may be delivered twice and out of
order. The frontier recognises copies by the block's id, and known tasks by its seen set.

Every method raises StorageBusy if trying again may help, StorageFailed if not, and ConfigError if
a person has to set something right: a password, a permission, a queue with other arguments. After
StorageBusy a block may have been published all the same. A carrier retries nothing; it reconnects
by itself with the next call.
"""

from __future__ import annotations

import secrets
from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol

import msgspec

MAX_ENTRIES = 64
"""The maximum number of tasks in a block. With larger blocks, fewer windows would fill one."""


class Block(msgspec.Struct, frozen=True):
    """Tasks that are sent together to one lane. Only the frontier knows what its entries mean."""

    id: int
    """64 bits. The frontier derives it from the tasks: see carried.lua."""
    lane: str
    entries: list[bytes]


class Delivery(msgspec.Struct, frozen=True):
    """A block that was fetched. It is delivered again unless its receipt is acknowledged."""

    block: Block
    receipt: object
    """For `ack` of the carrier that delivered it."""


class Carrier(Protocol):
    """Keeps blocks in lanes, which are identified by name: see `host_lane` and `shared_lane`."""

    @property
    @abstractmethod
    def most_bytes(self) -> int:
        """The maximum size of all entries of one block together. Larger tasks stay in Redis."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Identifies the carrier, for people and for comparison. Has no credentials in it."""

    @property
    def is_open(self) -> bool:
        """Whether it may be writable for others than those who may write to the frontier's
        Redis."""
        return True

    @property
    def kept_s(self) -> float | None:
        """For how long a block is kept. None: for ever."""
        return None

    @property
    def requests(self) -> int:
        """The number of requests so far that have a price, counted as they are billed."""
        return 0

    @property
    def request_price(self) -> float:
        """The price of one request in dollars. 0: requests are free."""
        return 0.0

    @abstractmethod
    async def declare(self, lane: str) -> None:
        """Create the lane, if there is none. Raises ConfigError if there is something else of this
        name."""

    @abstractmethod
    async def publish(self, blocks: Sequence[Block]) -> None:
        """Add blocks to their lanes. Lanes that are missing are created. Returns when the blocks
        are safe."""

    @abstractmethod
    async def fetch(self, lane: str, limit: int) -> list[Delivery]:
        """Take up to `limit` waiting blocks, the oldest first as far as the broker knows. Empty if
        none waits or if there is no such lane."""

    @abstractmethod
    async def ack(self, receipts: Sequence[object]) -> None:
        """Remove these blocks. A receipt that has expired has no effect: its block is delivered
        again."""

    @abstractmethod
    async def count(self, lane: str) -> int:
        """How many blocks wait in the lane; 0 if there is no such lane. Some brokers include the
        blocks that are held, and some only estimate."""

    @abstractmethod
    async def drop(self, lane: str) -> None:
        """Delete the lane with all its blocks. Not an error if there is no such lane."""

    @abstractmethod
    async def close(self) -> None:
        """Close the connection. Blocks that are held are delivered again, to others."""


def new_id() -> int:
    """A random id that no other block has, for all practical purposes."""
    return secrets.randbits(64)


def host_lane(crawl: str, host: str, priority: int) -> str:
    """The name of the lane of one host and priority. Operators see it on the broker."""
    return f"shoal.{crawl}.host.{host}.{priority}"


def shared_lane(crawl: str, number: int) -> str:
    """The name of a lane that many hosts share."""
    return f"shoal.{crawl}.shared.{number}"
