"""How much of a crawl stays in Redis if it has a carrier: the sizes of windows and blocks, and when
a host gets a lane of its own with the carrier."""

from __future__ import annotations

import secrets

import msgspec

OWN_FROM = 8
"""How many blocks of a host and priority may be in a shared lane before further blocks get a lane
of their own."""
MOST_OWN = 1000
"""How many such lanes a crawl may ever have: each is a queue of a broker."""
OWN_NAME = 150
"""How many bytes a host's name may have to be part of a queue's name: brokers allow 255 in all."""
DEEP = 8
"""A block of a shared lane is sent out again on arrival if its window has this many blocks more
than it should: otherwise one fast host would bring in the backlog of all hosts in its lane."""
ON_THE_WAY_S = 5.0
"""How long a worker waits for tasks that are on their way before it takes a suspect."""
CARRY_WAIT_S = 0.05
CARRY_WAIT_LONG_S = 0.5
"""After how long asking again makes sense for tasks that are on their way; the longer wait is for
tasks that have been on their way for long."""
KEY_BYTES = 32
"""The length of the key with which blocks are sealed."""
DRY = ""
"""Stands in place of a host among a worker's shares, with the number of dry hosts."""


class Window(msgspec.Struct, frozen=True):
    """How many tasks of each host and priority stay in Redis, and the size of blocks for the
    others."""

    paced: int = 32
    """Tasks of a host that has a rate. It is hit so rarely that a block arrives in time."""
    fast: int = 256
    """Tasks of a host without a rate: some hundred pages a second must not wait for the carrier."""
    block: int = 64
    block_bytes: int = 48 * 1024

    @property
    def numbers(self) -> dict[str, int]:
        """The sizes as the scripts read them, among the rules."""
        return {
            "window": self.paced,
            "window_fast": self.fast,
            "block": self.block,
            "block_bytes": self.block_bytes,
        }


class CarrierSetup(msgspec.Struct, frozen=True):
    """What a client with a carrier sets for a crawl that it creates."""

    window: Window
    carrier: str
    """The name of the carrier, for people."""

    def start_args(self) -> list[str]:
        """The arguments for start.lua: the carrier, and a new key. The key is created whether this
        carrier needs seals or not: later the crawl may get one that does."""
        return [self.carrier, secrets.token_hex(KEY_BYTES)]
