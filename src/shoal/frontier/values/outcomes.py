"""What comes back from workers, the outcomes of their tries; and the results of `add` and
`repair`."""

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
    """Whether this answer alone shows that the host wants less: see `policy.is_meant`."""


class Outcome(PageCounts, kw_only=True):
    """How a try at a leased task ended, and what that adds to the counters."""

    lease: Lease
    verdict: Verdict
    reason: str = ""
    """Why the task was retried, died or was dropped. One line."""
    detail: str = ""
    """The traceback, if a handler raised."""
    kind: FailureKind = FailureKind.OTHER
    """The kind of failure, for the counters. Only used if the task is retried or dead."""
    retry_in_s: float = 0.0
    """How long the task waits if it is retried, or returned because it is not due yet."""
    follow_ups: Sequence[Entry] = ()
    sent: bool = True
    """Whether a request was sent. If not, the host's turn is given back too, where that is safe."""
    fault: bool = False
    """The host did not answer as a healthy one would: no answer at all, 5xx, 429."""
    ours: bool = False
    """The failure is not the host's: it answered as it should, but the spider, or the reader of
    sitemaps, could not handle the content."""
    latency_s: float = 0.0
    """How long the host took to answer; 0 if it did not answer."""
    pushback: Pushback | None = None
    robots: Robots | None = None
    passage: Passage | None = None
    """What the try tells about the exit that it left by. None: nothing."""
    cookies: Jar | None = None
    """The whole cookie jar of the task's chain from now on. None: it stays as it is. Nothing else
    can have changed it meanwhile, because only one task of a chain is under way."""
    identity: IdentityReport | None = None
    """What the try tells about the identity that it was made with."""
    own_counts: dict[str, int] = msgspec.field(default_factory=dict)
    """The spider's own counters: see core/own_counts.py. Only if the try ends its task."""


class Added(msgspec.Struct, frozen=True):
    """The result of `add`."""

    added: int = 0
    duplicates: int = 0
    retried: int = 0
    """Dead tasks that were retried because their entries asked for it."""

    def __add__(self, other: Added) -> Added:
        return Added(
            self.added + other.added,
            self.duplicates + other.duplicates,
            self.retried + other.retried,
        )

    def with_retried(self, count: int) -> Added:
        """The result if `count` of the duplicates were dead tasks that were retried."""
        # A task that was forgotten meanwhile (`seen_for`) is not among the duplicates.
        return Added(self.added, max(self.duplicates - count, 0), self.retried + count)

    @property
    def any(self) -> bool:
        """Whether any entries were given, new or known."""
        return bool(self.added or self.duplicates or self.retried)

    @property
    def told(self) -> str:
        """The result as text for people."""
        again = f", {self.retried:,} tried again" if self.retried else ""
        return f"{self.added:,} added, {self.duplicates:,} known already{again}"


class Repaired(msgspec.Struct, frozen=True):
    """The result of `repair`."""

    lost: int = 0
    """Tasks that the carrier had lost, and that are dropped now."""
    forgotten: int = 0
    """Fingerprints that were forgotten: of lost tasks, and of all pages that led to others."""
    why_not: str = ""
    """Why lost tasks cannot be found again. Empty: they can."""
