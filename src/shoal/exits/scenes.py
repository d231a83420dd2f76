"""The input and output of a simulation: pools, a fleet, a site that bans exits, and figures."""

from __future__ import annotations

from collections import deque
from random import Random

import msgspec

from shoal.core.exits import Lent, PoolRules

STICKY_S = 600.0
"""How long the strategy `sticky` keeps an exit if the pool does not set it."""
STRATEGIES = ("rested", "random", "best", "sticky")

SPREAD = 0.3
"""By which fraction answers may take longer or shorter than usual."""
MAX_S = 366 * 86_400.0
"""A simulation that takes longer than this, in its own time, is given up."""


class PlayedPool(msgspec.Struct, frozen=True):
    """A pool in a simulation: its rules, and its number of exits."""

    rules: PoolRules
    exits: int


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """A simulated crawl of one site through exits."""

    pools: tuple[PlayedPool, ...]
    """The pool of the tasks, then those that it may escalate to."""
    host: str = "site.example"
    pages: int = 10_000
    workers: int = 5
    slots: int = 32
    """Requests in flight per worker."""
    rate: str = "none"
    """The rate of the host, as in a crawl's rules."""
    room: int = 16
    """The maximum number of requests in flight at the host."""
    max_blocks: int = 5
    latency_s: float = 0.5
    ban_after: int = 40
    """An exit is banned after this many requests ..."""
    ban_within_s: float = 600.0
    """... within this time ..."""
    ban_for_s: float = 1800.0
    """... for this long. Requests during the ban do not prolong it."""
    page_bytes: int = 100_000
    block_bytes: int = 2_000
    seed: int = 1


class Figures(msgspec.Struct, kw_only=True):
    """The results of simulating a strategy."""

    strategy: str
    seconds: float = 0.0
    """The duration by the clock of the simulation."""
    done: int = 0
    dead: int = 0
    left: int = 0
    """Tasks that had not ended when the simulation was given up."""
    requests: int = 0
    blocked: int = 0
    quarantines: int = 0
    """How often an exit, or a session of a gateway, was put into quarantine after a block."""
    exits_used: int = 0
    busiest_share: float = 0.0
    """The share of the busiest exit in all requests."""
    wire_bytes: int = 0
    cost: float = 0.0
    progress: list[tuple[float, int]] = []
    """Times, and how many pages were done by then."""


class BanningSite:
    """A site that counts the requests of each address, and bans addresses that send too many."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._random = Random(scene.seed)  # noqa: S311 - a simulation that can be repeated
        self._recent: dict[tuple[str, int], deque[float]] = {}
        self._banned: dict[tuple[str, int], float] = {}

    def blocks(self, lent: Lent, now: float) -> bool:
        """Whether the site blocks a request that arrives now. Every session has its own address."""
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
        """How long an answer takes: the latency of the scene, with random variation."""
        return self._scene.latency_s * self._random.uniform(1 - SPREAD, 1 + SPREAD)

    def dice(self) -> float:
        """A random number in [0, 1)."""
        return self._random.random()
