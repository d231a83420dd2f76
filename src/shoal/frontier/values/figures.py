"""Counters and measurements: a worker's are its pulse, a crawl's are its stats."""

from __future__ import annotations

import msgspec

from shoal.config import Rules
from shoal.core.counters import Counts
from shoal.core.failures import FailureKind
from shoal.core.histograms import Histogram
from shoal.core.ledger import SlotTime, Work
from shoal.frontier.values.states import CrawlState


class Pulse(msgspec.Struct, kw_only=True):
    """A worker's sign of life. Its counters begin with the worker, and never go down. Workers of an
    earlier version do not set all fields."""

    worker: str
    host: str
    pid: int
    version: str
    spider_version: str = ""
    """The spider's `spider_version`, or a hash of its files. Empty: not known."""
    in_flight: int = 0
    pages: int = 0
    """Pages it has finished since it started."""
    pages_per_s: float = 0.0
    rss_bytes: int = 0
    cpu_s: float = 0.0
    """CPU time of its process, of all threads."""
    backlog: int = 0
    """Pages that wait to be stored and finished."""
    fetches: Histogram = msgspec.field(default_factory=Histogram)
    """How long answered requests took, from the DNS lookup to the end of the body."""
    saves: Histogram = msgspec.field(default_factory=Histogram)
    """How long batches of results took to store, the archive included."""
    responses: dict[str, int] = {}
    """Answers by the class of their status: `2xx`, `3xx`, ..."""
    body_bytes: int = 0
    """Bytes of bodies, decompressed."""
    wire_bytes: int = 0
    """Bytes of requests and answers on the wire, without the overhead of TLS and TCP."""
    slots: int = 0
    """How many requests it can have in flight."""
    slot_time: SlotTime = SlotTime()
    """How its slots spent their time. If handlers are async, or several pages are handled at once,
    some of the time that counts as handling was spent waiting."""
    lately: Work | None = None
    """What it did in the last minute."""
    cores: float = 0.0
    memory_bytes: int = 0
    """The memory of its machine or container. 0: not known."""
    at: float = 0.0
    """When the pulse arrived, by the frontier's clock. Set by the frontier."""


WORKER_SILENT_S = 15.0
"""A worker that was silent for longer is not counted among the workers."""


class Stats(Counts):
    """A crawl's state, rules and counters. Reading them costs the same however large the crawl
    is."""

    crawl: str
    state: CrawlState
    rules: Rules
    created_at: float
    started_at: float | None = None
    finished_at: float | None = None
    inbox: int = 0
    """Seeds in the inbox: other programs left them, and no worker has collected them yet."""
    refused: int = 0
    """Entries of the inbox that were rejected."""
    outside: int = 0
    """Blocks of waiting tasks that are with a carrier."""
    missing: int = 0
    """Tasks that should be with the carrier and are not, because its queues were emptied."""
    foreign: int = 0
    """Blocks from the broker that the crawl did not send: another program writes to its queues."""
    broker_requests: int = 0
    """Requests to a broker that bills each of them."""
    broker_cost: float = 0.0
    """What these requests have cost, approximately, in dollars."""
    bloom: bool = False
    """Whether known URLs are kept in a Bloom filter by now."""
    pages_per_s: float = 0.0
    """Pages per second over the last ten to twenty seconds of work, including dead ones."""
    failures_by_kind: dict[FailureKind, int] = msgspec.field(default_factory=dict)
    """All tries that have failed and were retried or died, including those of tasks that were given
    a fresh start since. Kinds that never occurred are left out."""
    own_counts: dict[str, int] = msgspec.field(default_factory=dict)
    """The spider's own counters by name, from tries that ended their tasks."""

    @property
    def remaining(self) -> int:
        """Tasks that have not ended."""
        return self.waiting + self.delayed + self.leased

    @property
    def tried(self) -> int:
        """Tasks that are done or dead: `max_pages` and the rate count these."""
        return self.done + self.dead

    @property
    def ended(self) -> int:
        """Tasks that have ended: done, dead or dropped."""
        return self.done + self.dead + self.dropped
