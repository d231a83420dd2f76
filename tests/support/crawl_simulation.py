"""Simulates a crawl page by page, on a clock of its own: hosts with their limits, slots, cores."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush

import msgspec


class SimulatedHost(msgspec.Struct):
    """A host that may be requested every `interval_s`, by at most `room` requests at once."""

    pages: int
    latency_s: float
    interval_s: float = 0.0
    room: int = 16
    in_flight: int = 0
    next_at: float = 0.0
    is_lined_up: bool = False


class Simulation:
    """A simulated crawl. A free slot takes a page of the host that was ready first, like leases
    from the frontier. A page that has arrived waits for a core, and keeps its slot until it is
    read."""

    def __init__(
        self, hosts: Sequence[SimulatedHost], slots: int, cores: int = 1, read_s: float = 0.0
    ) -> None:
        self.now = 0.0
        self._hosts = hosts
        self._slots, self._cores, self._read_s = slots, cores, read_s
        self._ready: deque[int] = deque()
        self._unread: deque[int] = deque()
        self._events: list[tuple[float, int, str, int]] = []

    def run(self) -> float:
        """Simulate the crawl, and return the time when the last page was read."""
        for at in range(len(self._hosts)):
            self._line_up(at)
        while self._events or self._ready:
            self._begin()
            self.now, _, what, at = heappop(self._events)
            if what == "turn":
                self._ready.append(at)
            elif what == "came":
                self._unread.append(at)
            else:
                self._cores += 1
                self._slots += 1
                self._hosts[at].in_flight -= 1
                self._line_up(at)
            while self._unread and self._cores:
                self._cores -= 1
                self._later(self._read_s, "read", self._unread.popleft())
        return self.now

    def _begin(self) -> None:
        while self._slots and self._ready:
            at = self._ready.popleft()
            host = self._hosts[at]
            host.is_lined_up = False
            host.pages -= 1
            host.in_flight += 1
            host.next_at = self.now + host.interval_s
            self._slots -= 1
            self._later(host.latency_s, "came", at)
            self._line_up(at)

    def _line_up(self, at: int) -> None:
        host = self._hosts[at]
        if host.is_lined_up or not host.pages or host.in_flight >= host.room:
            return
        host.is_lined_up = True
        if host.next_at > self.now:
            self._later(host.next_at - self.now, "turn", at)
        else:
            self._ready.append(at)

    def _later(self, seconds: float, what: str, at: int) -> None:
        heappush(self._events, (self.now + seconds, len(self._events), what, at))
