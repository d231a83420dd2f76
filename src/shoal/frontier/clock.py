"""The frontier's clock, which all waits depend on. It never goes back.

A machine's clock may be set back by hours, and a server that takes over may have a different one.
Whatever was due at some moment would then wait until that moment comes a second time. So a crawl
remembers the latest moment it has seen. If the machine's clock shows an earlier time, the
frontier's clock goes on from the remembered moment, and stays ahead of the machine's.
"""

from __future__ import annotations

from typing import NamedTuple

JUMP_S = 1.0
"""A smaller step back is not corrected, because clocks are adjusted all the time. It makes waits
longer by as much."""


class Moment(NamedTuple):
    """A moment by the frontier's clock, and how far that clock is ahead of the machine's."""

    now: float
    ahead: float

    @property
    def by_machine(self) -> float:
        """The same moment by the machine's clock."""
        return self.now - self.ahead


def moment(machine: float, latest: float, ahead: float) -> Moment:
    """The time of the frontier's clock, given the machine's, the latest moment that the crawl has
    seen, and how far the frontier's clock was ahead. step.lua does the same."""
    if machine + ahead >= latest - JUMP_S:
        return Moment(machine + ahead, ahead)
    return Moment(latest, latest - machine)
