"""How the exits of a pool are doing: what can be used, and when."""

from __future__ import annotations

from typing import NamedTuple

from shoal.core import exit_policy as policy


class Outlook(NamedTuple):
    """How the exits of a pool are doing at a host."""

    listed: int
    out: int
    cooling: int
    usable: int
    full: int
    """Those that are neither out nor cooling, and can be used when a lease ends."""
    next_at: float
    """When the next one may be used that cannot be now. Infinity where time alone frees none."""

    @property
    def busy(self) -> int:
        """Those that only others keep from being used, or their pace."""
        return self.listed - self.out - self.cooling - self.usable

    def again_at(self, now: float) -> float:
        """When a look makes sense, where some are busy."""
        return min(self.next_at, now + policy.BUSY_WAIT_S) if self.full else self.next_at
