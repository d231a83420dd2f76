"""What is counted and measured: of a worker in its pulse, of a crawl in its stats."""

from __future__ import annotations

import msgspec

from shoal.config import Rules
from shoal.core.counters import Counts
from shoal.core.failures import FailureKind
from shoal.core.histograms import Histogram
from shoal.core.ledger import SlotTime, Work
from shoal.frontier.values.states import CrawlState


class Pulse(msgspec.Struct, kw_only=True):
    """A worker's sign of life. What it counts begins with the worker, and never goes back. Workers
    of an earlier version do not say all of it."""

    worker: str
    host: str
    pid: int
    version: str
    spider_version: str = ""
    """A hash of the spider's files, or what its `spider_version` says. Empty: none is known."""
    in_flight: int = 0
    pages: int = 0
    """Pages it has finished since it began."""
    pages_per_s: float = 0.0
    rss_bytes: int = 0
    cpu_s: float = 0.0
    """CPU time of its process, all threads."""
    backlog: int = 0
    """Pages that wait to be stored and finished."""
    fetches: Histogram = msgspec.field(default_factory=Histogram)
    """How long answered requests took, from the lookup of the name to the end of the body."""
    saves: Histogram = msgspec.field(default_factory=Histogram)
    """How long batches of results took to store, the archive included."""
    responses: dict[str, int] = {}
    """Answers by the class of their status: `2xx`, `3xx`, ..."""
    body_bytes: int = 0
    """Bytes of bodies, unpacked."""
    wire_bytes: int = 0
    """Bytes on the wire, of requests and answers; without TLS and TCP."""
    slots: int = 0
    """Requests that it has in flight at most."""
    slot_time: SlotTime = SlotTime()
    """Where the time of its slots went. Where handlers are async, or several pages are read at
    once, some of what counts as reading them was waited for."""
    lately: Work | None = None
    """What it did in the last minute."""
    cores: float = 0.0
    memory_bytes: int = 0
    """Of its machine, or its container. 0: not known."""
    at: float = 0.0
    """When it was heard of, by the frontier's clock. Set by the frontier."""


WORKER_SILENT_S = 15.0
"""A worker that was not heard of for so long is not counted among the workers."""


class Stats(Counts):
    """A crawl and its counters. Reading them costs the same however large the crawl is."""

    crawl: str
    state: CrawlState
    rules: Rules
    created_at: float
    started_at: float | None = None
    finished_at: float | None = None
    inbox: int = 0
    """Seeds that others have left and nobody has looked at yet."""
    refused: int = 0
    """Entries of the inbox that were no tasks."""
    outside: int = 0
    """Blocks of tasks that are with a carrier. Their tasks wait."""
    missing: int = 0
    """Tasks that should be with the carrier and are not: somebody has emptied its queues."""
    foreign: int = 0
    """Blocks from the broker that the crawl has not sent: somebody else writes to its queues."""
    broker_requests: int = 0
    """Requests to a broker that bills each of them."""
    broker_cost: float = 0.0
    """What these have cost, about, in dollars."""
    bloom: bool = False
    """Whether known URLs are in a Bloom filter by now."""
    pages_per_s: float = 0.0
    """Over the last ten to twenty seconds of work; dead ones count, too."""
    failures_by_kind: dict[FailureKind, int] = msgspec.field(default_factory=dict)
    """Tries that have failed, ever, and were retried or dead: those of tasks that have got a fresh
    start since, too. Kinds that never occurred are left out."""
    own_counts: dict[str, int] = msgspec.field(default_factory=dict)
    """What the spider has counted, by name: of tries that have ended their tasks."""

    @property
    def remaining(self) -> int:
        """Tasks that have not ended."""
        return self.waiting + self.delayed + self.leased

    @property
    def tried(self) -> int:
        """Tasks that ended with an answer, good or bad: what `max_pages` and the rate count."""
        return self.done + self.dead

    @property
    def ended(self) -> int:
        """Tasks that have ended, one way or another."""
        return self.done + self.dead + self.dropped
