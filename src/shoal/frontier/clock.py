"""The frontier's clock, which every wait hangs on: it never goes back.

A machine's clock may be set back by hours, and a server that takes over may have another one. All
that was to happen at a moment would then wait until that moment comes a second time. So a crawl
remembers the latest moment it has seen. Where the clock says less, it goes on from there, and
is ahead of the clock from then on.
"""

from __future__ import annotations

from typing import NamedTuple

JUMP_S = 1.0
"""Less than that is no jump: clocks are adjusted all the time. Waits are then longer by so much."""


class Moment(NamedTuple):
    """A moment by the frontier's clock, and how far that is ahead of the machine's."""

    now: float
    ahead: float

    @property
    def by_machine(self) -> float:
        """What the machine's clock says."""
        return self.now - self.ahead


def moment(machine: float, latest: float, ahead: float) -> Moment:
    """What the frontier's clock says, given the machine's. step.lua does the same."""
    if machine + ahead >= latest - JUMP_S:
        return Moment(machine + ahead, ahead)
    return Moment(latest, latest - machine)
