"""Work as it comes back: outcomes of tries, and what adding and repairing did."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from shoal.core.cookies import Jar
from shoal.core.counters import PageCounts
from shoal.core.exits import Passage
from shoal.core.failures import FailureKind
from shoal.core.identities import IdentityReport
from shoal.core.records import Robots
from shoal.frontier.values.states import Verdict
from shoal.frontier.values.work import Entry, Lease


class Pushback(msgspec.Struct, frozen=True):
    """The host asked for less (429, 503)."""

    retry_after_s: float | None = None
    meant: bool = True
    """Whether it is the host's word by itself: see `policy.is_meant`."""


class Outcome(PageCounts, kw_only=True):
    """What became of one leased task, and what that adds to the counters."""

    lease: Lease
    verdict: Verdict
    reason: str = ""
    """Why it was retried, died or was dropped. One line."""
    detail: str = ""
    """The traceback, where a handler raised."""
    kind: FailureKind = FailureKind.OTHER
    """Why it failed, in a word that is counted. Only of tries that are retried or dead."""
    retry_in_s: float = 0.0
    """How long a task waits that is retried, or returned because it is not due yet."""
    follow_ups: Sequence[Entry] = ()
    sent: bool = True
    """Whether a request went out. If not, the host's turn is given back too, where that is safe."""
    fault: bool = False
    """The host did not answer as a healthy one would: no answer at all, 5xx, 429."""
    ours: bool = False
    """The host answered as it should: it was what it sent that the spider, or who reads sitemaps,
    could not read."""
    latency_s: float = 0.0
    """How long the host took to answer. 0 if it did not."""
    pushback: Pushback | None = None
    robots: Robots | None = None
    passage: Passage | None = None
    """What the try says of the exit that it left by, if it did. Without one, nothing is known."""
    cookies: Jar | None = None
    """The jar of the task's chain from now on. None: it stays as it is. All of it, because nobody
    else can change it meanwhile: of a chain, one task is under way."""
    identity: IdentityReport | None = None
    """What the try says of the identity that it was made with."""
    own_counts: dict[str, int] = msgspec.field(default_factory=dict)
    """What the spider has counted: see core/own_counts.py. Only of a try that ends its task."""


class Added(msgspec.Struct, frozen=True):
    """What `add` did."""

    added: int = 0
    duplicates: int = 0
    retried: int = 0
    """Dead tasks that were given a fresh start, because their entries asked for it."""

    def __add__(self, other: Added) -> Added:
        return Added(
            self.added + other.added,
            self.duplicates + other.duplicates,
            self.retried + other.retried,
        )

    def with_retried(self, count: int) -> Added:
        """The same, where so many of the duplicates were dead and no longer are."""
        # One that was forgotten meanwhile (`seen_for`) is no duplicate.
        return Added(self.added, max(self.duplicates - count, 0), self.retried + count)

    @property
    def any(self) -> bool:
        """Whether there was anything to add, new or known."""
        return bool(self.added or self.duplicates or self.retried)

    @property
    def told(self) -> str:
        """What it did, for people."""
        again = f", {self.retried:,} tried again" if self.retried else ""
        return f"{self.added:,} added, {self.duplicates:,} known already{again}"


class Repaired(msgspec.Struct, frozen=True):
    """What `repair` did."""

    lost: int = 0
    """Tasks that were lost, and are dropped now."""
    forgotten: int = 0
    """Fingerprints that count as new now: of what was lost, and of all pages that led to others."""
    why_not: str = ""
    """Why what was lost cannot be found again. Empty: it can."""
