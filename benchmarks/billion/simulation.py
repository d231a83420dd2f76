"""Simulates the model's crawl page by page, with turns of hosts, slots and random links.

It includes what the fluid leaves out: pages are discrete, latencies differ, and a host to which few
links lead has no pages for a while.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush

from benchmarks.billion.model import Course
from benchmarks.billion.web import Links, Web

CAME, TURN = 0, 1


def simulate(web: Web, progress: Callable[[int], None] = lambda _: None) -> Course:
    """Fetch all pages. Calls `progress` about every 1,000 pages, with their number."""
    simulation = _Simulation(web)
    while simulation.done < web.pages:
        simulation.step()
        if simulation.done % 1_000 == 0:
            progress(simulation.done)
    return Course(
        simulation.now, web.pages / simulation.now, max(simulation.waiting), simulation.worst_wait_s
    )


class _Simulation:
    def __init__(self, web: Web) -> None:
        self.now = 0.0
        self.done = 0
        self.waiting = [1] * web.hosts
        self.worst_wait_s = 0.0
        self._web = web
        self._links = Links(web)
        self._latencies = [web.latency_s(host) + web.ask_every_s / 2 for host in range(web.hosts)]
        self._turn_s = web.turn_s
        self._free = web.slots
        self._unsent = web.pages
        self._next_at = [0.0] * web.hosts
        # A host is in this queue, or its next turn is in the events, or it has no waiting pages.
        self._ready = deque((0.0, host) for host in range(web.hosts))
        self._is_lined_up = [True] * web.hosts
        self._events: list[tuple[float, int, int]] = []
        self._begin()

    def step(self) -> None:
        """Advance to the next event."""
        self.now, what, host = heappop(self._events)
        if what == TURN:
            self._ready.append((self.now, host))
        else:
            self.done += 1
            self._free += 1
            for found in self._links.of_page():
                self.waiting[found] += 1
                if not self._is_lined_up[found]:
                    self._line_up(found)
        self._begin()

    def _begin(self) -> None:
        while self._free and self._ready and self._unsent:
            since, host = self._ready.popleft()
            if since > 0:  # At the very beginning all hosts are ready at once.
                self.worst_wait_s = max(self.worst_wait_s, self.now - since)
            self._free -= 1
            self._unsent -= 1
            self.waiting[host] -= 1
            self._next_at[host] = self.now + self._turn_s
            heappush(self._events, (self.now + self._latencies[host], CAME, host))
            self._is_lined_up[host] = False
            if self.waiting[host]:
                self._line_up(host)

    def _line_up(self, host: int) -> None:
        self._is_lined_up[host] = True
        if self._next_at[host] > self.now:
            heappush(self._events, (self._next_at[host], TURN, host))
        else:
            self._ready.append((self.now, host))
