"""How one host is being served: what a step reads of it, changes and writes back."""

from __future__ import annotations

import msgspec

from shoal.config import Rules
from shoal.core.policy import Pace


class HostSchedule(msgspec.Struct):
    """A row of the table `hosts`. The fields are columns: statements name them in this order."""

    id: int
    waiting: int
    leased: int
    next_at: float
    penalty_s: float
    pushed_at: float
    crawl_delay_s: float
    robots_at: float | None
    robots_until: float
    done: int
    failed: int
    failures: int
    broken_at: float
    latency_s: float

    def room(self, rules: Rules, now: float) -> int:
        """How many more requests may be in flight. One until robots.txt is known, and one to a
        host that only fails."""
        alone = rules.robots and not self.knows_robots(now)
        limit = 1 if alone or self.pace.is_broken else rules.concurrency_per_host
        return max(limit - self.leased, 0)

    def knows_robots(self, now: float) -> bool:
        """Whether a robots.txt has been stored and still holds."""
        return self.robots_at is not None and now < self.robots_until

    def ready_at(self, rules: Rules, now: float) -> float | None:
        """Its place in the heap of hosts. None while it has no work or no room."""
        return self.next_at if self.waiting > 0 and self.room(rules, now) else None

    @property
    def pace(self) -> Pace:
        return Pace(self.penalty_s, self.next_at, self.pushed_at, self.failures, self.broken_at)

    @pace.setter
    def pace(self, pace: Pace) -> None:
        self.penalty_s, self.next_at, self.pushed_at = pace.penalty_s, pace.next_at, pace.pushed_at
        self.failures, self.broken_at = pace.failures, pace.broken_at
