"""The schedule of one host: what a step reads, changes and writes back."""

from __future__ import annotations

import msgspec

from shoal.config import Rules
from shoal.core.policy import Pace


class HostSchedule(msgspec.Struct):
    """A row of the table `hosts`. Its fields are columns; statements name them in this order."""

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
    shared: int
    sharers: int

    @property
    def queue_id(self) -> int:
        """The number that stands for this host in its tasks. Lanes have negative numbers."""
        return self.id

    @property
    def plain(self) -> int:
        """Leases that each take room: those that are not shared."""
        return self.leased - self.shared

    def limit(self, rules: Rules, now: float) -> int:
        """How many requests may be in flight: one without a robots.txt, or if the host only
        fails."""
        return rules.concurrency_per_host if self.is_open(rules, now) else 1

    def is_open(self, rules: Rules, now: float) -> bool:
        """Whether it may get more than one request at a time."""
        if rules.robots and not self.knows_robots(now):
            return False
        return not (self.failures and self.pace.is_broken)

    def knows_robots(self, now: float) -> bool:
        """Whether a robots.txt has been stored and is still valid."""
        return self.robots_at is not None and now < self.robots_until

    @property
    def pace(self) -> Pace:
        return Pace(self.penalty_s, self.next_at, self.pushed_at, self.failures, self.broken_at)

    @pace.setter
    def pace(self, pace: Pace) -> None:
        self.penalty_s, self.next_at, self.pushed_at = pace.penalty_s, pace.next_at, pace.pushed_at
        self.failures, self.broken_at = pace.failures, pace.broken_at
