"""Calculates how long a fleet takes to empty queues that each have a speed limit. Pure.

The model treats pages as a fluid. After each page, a queue gives nothing until its next turn has
come. Then it waits for the fleet, which serves the queue that has waited longest. So all queues
wait equally long, and capacity that slow queues leave goes to the others: as long as queues wait at
all, the fleet is fully used. As queues run dry, the others wait less. Between two such moments all
speeds are constant.

The simple bound, the larger of the longest queue's time and of all work at full speed, is too
short: at the end, a few queues are left that cannot use the whole fleet.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nsmallest
from math import ceil, inf

import msgspec

_CLOSE = 1e-6
_FEW = 100
"""If there are more queues than this, those with nearly the same limits are treated as the same."""
_ALIKE = 1.05
"""Times that differ by less than this factor may be treated as the same."""
_STEPS = 200
"""The simulation takes about this many steps at most. With more queues, several run dry in each
step, and some of them are served a little past their end. A thousand queues then take hardly longer
to simulate than two hundred, and the result is within 1 %."""


class Queue(msgspec.Struct, frozen=True):
    """Pages that can only be fetched at a limited speed, however large the fleet is."""

    name: str
    pages: float
    hold_s: float
    """How long a page keeps a slot."""
    turn_s: float = 0.0
    """The least time between two pages."""
    room: float = inf
    """How many pages may be in flight at once."""

    @property
    def per_s(self) -> float:
        """The most pages per second: the speed without any wait."""
        return self.speed(0.0)

    @property
    def floor_s(self) -> float:
        """The least time in which the queue can be emptied."""
        return self.pages / self.per_s

    def speed(self, wait_s: float) -> float:
        """Pages per second, if each page waits this long for the fleet."""
        cycle_s = self.turn_s + wait_s
        return min(1 / cycle_s if cycle_s else inf, self.room / (self.hold_s + wait_s))


class Capacity(msgspec.Struct, frozen=True):
    """What a fleet can do for all queues together."""

    slots: float
    per_s: float
    """The most pages per second, whatever the limit is: CPU, network, stores."""


class Drained(msgspec.Struct, frozen=True):
    """How long it takes to empty the queues."""

    seconds: float
    """Until the last queue is empty."""
    per_s: float
    """Pages per second at the beginning."""
    is_fleet_short: bool
    """Whether queues have to wait for the fleet at the beginning."""


def drain(queues: Sequence[Queue], capacity: Capacity) -> Drained:
    """Simulate until all queues are empty. Without any capacity that takes infinitely long."""
    left = [queue for queue in queues if queue.pages > 0]
    if not left:
        return Drained(0.0, 0.0, False)
    if capacity.slots <= 0 or capacity.per_s <= 0:
        return Drained(inf, 0.0, True)
    simulation = _Simulation(_kinds(left), capacity)
    wait_s, per_s = simulation.wait_s, simulation.per_s
    while simulation.kinds and simulation.wait_s > 0:
        simulation.step()
    rest_s = (kind.rest_s for kind in simulation.kinds)  # No queue waits for the fleet any more.
    return Drained(simulation.now + max(rest_s, default=0.0), per_s, wait_s > 0)


class _Kind:
    """Queues with the same limits. They are all served at the same speed."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        """One of them, for its limits."""
        self.pages: list[float] = []
        """How many pages each queue had at the start: those that are not empty, the longest first.
        """
        self.served = 0.0
        """How many pages of each queue are done."""

    @property
    def rest_s(self) -> float:
        """How long the longest queue still takes at full speed."""
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
    """Serves queues, in steps from one moment at which a queue runs dry to the next."""

    def __init__(self, kinds: list[_Kind], capacity: Capacity) -> None:
        self.kinds = kinds
        self.now = 0.0
        self._at_once = ceil(sum(len(kind.pages) for kind in kinds) / _STEPS)
        self.wait_s = 0.0
        """How long each page waits for the fleet once its queue's turn has come."""
        self._capacity = capacity
        if self._load(0.0) > 1:
            self.wait_s = self._solved(self._longest_wait_s())

    @property
    def per_s(self) -> float:
        """The current speed of all queues together, in pages per second."""
        return sum(len(kind.pages) * kind.queue.speed(self.wait_s) for kind in self.kinds)

    def step(self) -> None:
        """Advance to the moment at which a queue runs dry, or several if there are many."""
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
        """The share of the fleet that all queues would use with this wait. Above 1, more than it
        has."""
        slots = per_s = 0.0
        for kind in self.kinds:
            speed = len(kind.pages) * kind.queue.speed(wait_s)
            per_s += speed
            slots += speed * kind.queue.hold_s
        return max(slots / self._capacity.slots, per_s / self._capacity.per_s)

    def _longest_wait_s(self) -> float:
        """A wait with which the load is at most 1, whatever the limits of the queues are."""
        queues = sum(len(kind.pages) for kind in self.kinds)
        hold_s = sum(len(kind.pages) * kind.queue.hold_s for kind in self.kinds)
        return max(queues / self._capacity.per_s, hold_s / self._capacity.slots)

    def _solved(self, most_s: float) -> float:
        """The wait, `most_s` at most, with which the load is just 1; 0 if the fleet is not short.

        Solved by false position: the load falls as the wait grows, from above 1 without any wait
        to at most 1 with `most_s`.
        """
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
                low, over, under = middle, off, under / 2  # Halve the end that stays (Illinois).
            else:
                high, under, over = middle, off, over / 2
        return high
