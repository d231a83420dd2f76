"""What a simulation plays: the pool, the fleet, and a site that bans exits."""

from __future__ import annotations

from collections import deque
from random import Random

import msgspec

from shoal.core.exits import Lent, PoolRules

STICKY_S = 600.0
"""How long the strategy `sticky` keeps an exit, where the pool says nothing of it."""
STRATEGIES = ("rested", "random", "best", "sticky")

SPREAD = 0.3
"""Answers take longer or shorter than usual by so much of it."""
MAX_S = 366 * 86_400.0
"""What takes longer than a year of its own time is given up."""


class PlayedPool(msgspec.Struct, frozen=True):
    """A pool as it is played: its rules, and how many exits it has."""

    rules: PoolRules
    exits: int


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """A crawl of one site by exits."""

    pools: tuple[PlayedPool, ...]
    """The pool of the tasks, then those that it may go up to."""
    host: str = "site.example"
    pages: int = 10_000
    workers: int = 5
    slots: int = 32
    """Requests in flight per worker."""
    rate: str = "none"
    """Of the host, as in a crawl's rules."""
    room: int = 16
    """Requests in flight at the host."""
    max_blocks: int = 5
    latency_s: float = 0.5
    ban_after: int = 40
    """An exit is banned after so many requests ..."""
    ban_within_s: float = 600.0
    """... within this time ..."""
    ban_for_s: float = 1800.0
    """... for so long. What it asks for meanwhile prolongs nothing."""
    page_bytes: int = 100_000
    block_bytes: int = 2_000
    seed: int = 1


class Figures(msgspec.Struct, kw_only=True):
    """How a strategy did."""

    strategy: str
    seconds: float = 0.0
    """By the clock of the simulation."""
    done: int = 0
    dead: int = 0
    left: int = 0
    """Tasks that had not ended when it was given up."""
    requests: int = 0
    blocked: int = 0
    quarantines: int = 0
    """How often an exit was left alone after a block; of a gateway, how often a session was."""
    exits_used: int = 0
    busiest_share: float = 0.0
    """Of all requests, those by the exit that had most."""
    wire_bytes: int = 0
    cost: float = 0.0
    progress: list[tuple[float, int]] = []
    """Moments, and how many pages were done by then."""


class BanningSite:
    """A site that counts the requests of each address, and bans those that ask for too much."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._random = Random(scene.seed)  # noqa: S311 - a simulation that can be repeated
        self._recent: dict[tuple[str, int], deque[float]] = {}
        self._banned: dict[tuple[str, int], float] = {}

    def blocks(self, lent: Lent, now: float) -> bool:
        """Whether it refuses a request that comes now. Every session has an address of its own."""
        address = (lent.exit, lent.session)
        if now < self._banned.get(address, 0.0):
            return True
        recent = self._recent.setdefault(address, deque())
        while recent and recent[0] <= now - self._scene.ban_within_s:
            recent.popleft()
        recent.append(now)
        if len(recent) <= self._scene.ban_after:
            return False
        recent.clear()
        self._banned[address] = now + self._scene.ban_for_s
        return True

    def takes_s(self) -> float:
        """How long an answer takes: around what the scene says."""
        return self._scene.latency_s * self._random.uniform(1 - SPREAD, 1 + SPREAD)

    def dice(self) -> float:
        """A number in [0, 1)."""
        return self._random.random()
