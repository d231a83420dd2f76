"""When a fleet is done with queues that each allow so much. Pure.

Work is a fluid here. A queue gives a page, then nothing until its next turn has come; then it waits
for the fleet, which serves first what has waited longest. So all queues wait equally long, and what
slow ones leave goes to the others: as long as they wait at all, the fleet has its hands full. As
queues run dry the others wait less. Between two such moments all speeds are constant.

The plain bound, the longest queue or all work at full speed, is too short: at the end a few queues
are left that cannot use the fleet.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nsmallest
from math import ceil, inf

import msgspec

_CLOSE = 1e-6
_FEW = 100
"""So many queues are told apart; of more, those that are nearly alike are taken for the same."""
_ALIKE = 1.05
_STEPS = 200
"""Of more queues, several run dry in one step, some of them served a little past their ends: a
thousand queues take hardly longer to think about than two hundred, and come out within 1 %."""


class Queue(msgspec.Struct, frozen=True):
    """Work that is done at a limited speed, however large the fleet is."""

    name: str
    pages: float
    hold_s: float
    """How long a page of it keeps a slot."""
    turn_s: float = 0.0
    """The time between two pages."""
    room: float = inf
    """Pages that may be under way at once."""

    @property
    def per_s(self) -> float:
        """Pages per second at most."""
        return self.speed(0.0)

    @property
    def floor_s(self) -> float:
        """How long it takes at least."""
        return self.pages / self.per_s

    def speed(self, wait_s: float) -> float:
        """Pages per second, if it has to wait so long for the fleet each time."""
        cycle_s = self.turn_s + wait_s
        return min(1 / cycle_s if cycle_s else inf, self.room / (self.hold_s + wait_s))


class Capacity(msgspec.Struct, frozen=True):
    """What a fleet has for all queues together."""

    slots: float
    per_s: float
    """Pages per second, whatever it is that allows no more."""


class Drained(msgspec.Struct, frozen=True):
    """How the queues run dry."""

    seconds: float
    """Until the last one is."""
    per_s: float
    """Pages per second at the beginning."""
    is_fleet_short: bool
    """Whether queues have to wait for the fleet at the beginning."""


def drain(queues: Sequence[Queue], capacity: Capacity) -> Drained:
    """Serve the queues until nothing is left. Infinitely long if there is nothing to do it with."""
    left = [queue for queue in queues if queue.pages > 0]
    if not left:
        return Drained(0.0, 0.0, False)
    if capacity.slots <= 0 or capacity.per_s <= 0:
        return Drained(inf, 0.0, True)
    simulation = _Simulation(_kinds(left), capacity)
    wait_s, per_s = simulation.wait_s, simulation.per_s
    while simulation.kinds and simulation.wait_s > 0:
        simulation.step()
    rest_s = (kind.rest_s for kind in simulation.kinds)  # Nobody waits any more.
    return Drained(simulation.now + max(rest_s, default=0.0), per_s, wait_s > 0)


class _Kind:
    """Queues that are served at the same speed."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.pages: list[float] = []  # Of each that is not dry, the longest first.
        self.served = 0.0  # Of each.

    @property
    def rest_s(self) -> float:
        """How long the longest takes at full speed."""
        return (self.pages[0] - self.served) / self.queue.per_s


def _kinds(queues: Sequence[Queue]) -> list[_Kind]:
    kinds: dict[tuple[float, float, float], _Kind] = {}
    for queue in sorted(queues, key=lambda queue: -queue.pages):
        alike = (queue.hold_s, queue.turn_s, queue.room)
        if len(queues) > _FEW:
            alike = (_rounded(queue.hold_s), _rounded(queue.turn_s), queue.room)
        kinds.setdefault(alike, _Kind(queue)).pages.append(queue.pages)
    return list(kinds.values())


def _rounded(value: float) -> float:
    power = 1e-6
    while power < value:
        power *= _ALIKE
    return power


class _Simulation:
    """How queues are served, from one moment at which one runs dry to the next."""

    def __init__(self, kinds: list[_Kind], capacity: Capacity) -> None:
        self.kinds = kinds
        self.now = 0.0
        self._at_once = ceil(sum(len(kind.pages) for kind in kinds) / _STEPS)
        self.wait_s = 0.0
        """How long each queue waits for the fleet, once its turn has come."""
        self._capacity = capacity
        if self._load(0.0) > 1:
            self.wait_s = self._solved(self._longest_wait_s())

    @property
    def per_s(self) -> float:
        """Pages per second, now."""
        return sum(len(kind.pages) * kind.queue.speed(self.wait_s) for kind in self.kinds)

    def step(self) -> None:
        """Go on until a queue runs dry, or several if there are many."""
        speeds = [kind.queue.speed(self.wait_s) for kind in self.kinds]
        pairs = list(zip(self.kinds, speeds, strict=True))
        dry_s = (
            (pages - kind.served) / speed
            for kind, speed in pairs
            for pages in kind.pages[-self._at_once :]
        )
        passed_s = nsmallest(self._at_once, dry_s)[-1]
        self.now += passed_s
        for kind, speed in pairs:
            kind.served += passed_s * speed
            while kind.pages and kind.pages[-1] <= kind.served * (1 + _CLOSE):
                kind.pages.pop()
        self.kinds = [kind for kind in self.kinds if kind.pages]
        if self.kinds:
            self.wait_s = self._solved(self.wait_s)

    def _load(self, wait_s: float) -> float:
        """What all queues together would take of the fleet. 1: all of it."""
        slots = per_s = 0.0
        for kind in self.kinds:
            speed = len(kind.pages) * kind.queue.speed(wait_s)
            per_s += speed
            slots += speed * kind.queue.hold_s
        return max(slots / self._capacity.slots, per_s / self._capacity.per_s)

    def _longest_wait_s(self) -> float:
        """A wait that is long enough, whatever the queues allow."""
        queues = sum(len(kind.pages) for kind in self.kinds)
        hold_s = sum(len(kind.pages) * kind.queue.hold_s for kind in self.kinds)
        return max(queues / self._capacity.per_s, hold_s / self._capacity.slots)

    def _solved(self, most_s: float) -> float:
        """The wait, at most so long, with which the fleet has just enough to do. By false position:
        more than a wait of 0 allows is less than the longest wait does."""
        low, high = 0.0, most_s
        over, under = self._load(low) - 1, self._load(high) - 1
        if over <= 0:
            return 0.0
        for _ in range(60):
            if under >= -_CLOSE or high - low <= _CLOSE * high:
                break
            middle = (low * under - high * over) / (under - over) if over < inf else high / 2
            off = self._load(middle) - 1
            if off > 0:
                low, over, under = middle, off, under / 2  # The end that stays counts less.
            else:
                high, under, over = middle, off, over / 2
        return high
