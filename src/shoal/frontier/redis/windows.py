"""How much of a crawl is in Redis where the rest travels: sizes, and what decides on lanes."""

from __future__ import annotations

import secrets

import msgspec

OWN_FROM = 8
"""So many blocks of a host and priority in a lane that it shares: further ones get their own."""
MOST_OWN = 1000
"""Lanes of their own that a crawl may have, ever: each is a queue of a broker."""
OWN_NAME = 150
"""Bytes of a host whose name can be part of a queue's: brokers take 255 in all."""
DEEP = 8
"""A block of a shared lane that nobody asked for goes round again where its window has so many
blocks too many: else one fast host would bring in the backlog of all that share its lane."""
ON_THE_WAY_S = 5.0
"""For so long a worker waits for tasks that are on their way, before it takes on a suspect."""
CARRY_WAIT_S = 0.05
CARRY_WAIT_LONG_S = 0.5
"""When asking again makes sense for tasks that are on their way, or have been for long."""
KEY_BYTES = 32
"""Of what blocks are sealed with."""
DRY = ""
"""In the place of a host among a worker's shares: so many hosts are dry."""


class Window(msgspec.Struct, frozen=True):
    """What stays in Redis of each host and priority, and how the rest is cut."""

    paced: int = 32
    """Tasks of a host that has a rate: it is hit once in a while, and a block comes in no time."""
    fast: int = 256
    """Tasks of a host without one: some hundred pages a second must not wait for the carrier."""
    block: int = 64
    block_bytes: int = 48 * 1024

    @property
    def numbers(self) -> dict[str, int]:
        """As the scripts read them, among the rules."""
        return {
            "window": self.paced,
            "window_fast": self.fast,
            "block": self.block,
            "block_bytes": self.block_bytes,
        }


class Travel(msgspec.Struct, frozen=True):
    """What a client with a carrier says of a crawl that it makes."""

    window: Window
    carrier: str
    """Which one it is, for people."""

    def papers(self) -> list[str]:
        """As start.lua takes them: the carrier, and a new key. It is made whether this carrier
        needs seals or not: later the crawl may get one that does."""
        return [self.carrier, secrets.token_hex(KEY_BYTES)]
