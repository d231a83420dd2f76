"""Summarises the exits of a pool: how many can be used, and when more can be."""

from __future__ import annotations

from typing import NamedTuple

from shoal.core import exit_policy as policy


class Outlook(NamedTuple):
    """The states of a pool's exits at a host, counted."""

    listed: int
    out: int
    cooling: int
    usable: int
    full: int
    """Exits that are neither out nor cooling, and can be used once a lease ends."""
    next_at: float
    """When the next exit becomes usable that is not now. Infinity if none does by time alone."""

    @property
    def busy(self) -> int:
        """Exits that are unusable only because of other requests, or of their pace."""
        return self.listed - self.out - self.cooling - self.usable

    def again_at(self, now: float) -> float:
        """When to look again, if some exits are busy."""
        return min(self.next_at, now + policy.BUSY_WAIT_S) if self.full else self.next_at
