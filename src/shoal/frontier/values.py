"""What goes into a frontier and comes out of it: tasks with their leases, outcomes and counts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec

from shoal.config import Rules
from shoal.core.cookies import Jar
from shoal.core.counters import Counts, PageCounts
from shoal.core.exits import Lent, Passage
from shoal.core.failures import FailureKind
from shoal.core.histograms import Histogram
from shoal.core.identities import IdentityReport, LeasedIdentity
from shoal.core.ledger import SlotTime, Work
from shoal.core.policy import Pace
from shoal.core.records import Robots
from shoal.core.task import Task, without_unknown


class TaskState(StrEnum):
    """Where a task is in its life. SQLite files keep its number: the order stays."""

    WAITING = "waiting"
    DELAYED = "delayed"
    LEASED = "leased"
    DONE = "done"
    DEAD = "dead"
    DROPPED = "dropped"


class CrawlState(StrEnum):
    """Where a crawl is in its life."""

    NEW = "new"
    """Has seeds, but nobody has started it."""
    RUNNING = "running"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    FINISHED = "finished"

    @property
    def over(self) -> bool:
        """Nothing will be handed out any more, unless new seeds come."""
        return self in (CrawlState.CANCELLED, CrawlState.FINISHED)

    @property
    def live(self) -> bool:
        """It was started, and is not over."""
        return self in (CrawlState.RUNNING, CrawlState.PAUSED)


class Control(StrEnum):
    """What can be done to a whole crawl."""

    SEAL = "seal"
    """All seeds are in: from now on the crawl is finished when nothing is left."""
    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    """Everything not yet ended is dropped."""


class Verdict(StrEnum):
    """How one try at a task ended."""

    DONE = "done"
    RETRY = "retry"
    DEAD = "dead"
    DROPPED = "dropped"
    RETURNED = "returned"


ENDING = frozenset({Verdict.DONE, Verdict.DEAD, Verdict.DROPPED})
"""Those after which a task is never tried again, unless somebody asks for it."""


class Entry(msgspec.Struct, frozen=True):
    """A task that has passed admission: its address is checked and its identity known."""

    fingerprint: bytes
    task: Task
    retry: bool = False
    """Whether `add` gives it a fresh start if it is dead."""
    shape: str | None = None
    """Of a link in a crawl that limits these: the shape of its address, see core/shapes.py; empty
    if only its host counts."""


class Lease(msgspec.Struct):
    """The right to work on a task, and to send its request now."""

    fingerprint: bytes
    token: str
    task: Task
    robots_at: float | None = None
    """When the host's robots.txt was stored. None where the crawl obeys robots.txt and nobody has
    fetched it: this lease is then the permission to fetch robots.txt instead of the page."""
    paced: bool = False
    """The host has a rate: what is not sent within `policy.SEND_SLACK_S` must be given back."""
    alone: bool = False
    """Workers died with this task: the worker holds nothing else, and must ask for nothing else
    until this is finished."""
    crowded: bool = False
    """The host has no room for more, with this one: others wait for it."""
    shared: bool = False
    """The request may be sent while the worker has less in flight at the host than its share of it:
    see `Grant.shares`."""
    clock_s: float = 0.0
    """The frontier's time when our time.monotonic() was 0."""
    lent: Lent | None = None
    """The exit that its request leaves by. Set for every task with a pool, and for those with a
    session whose group goes by one, and for no other: such a request may leave in no other way."""
    cookies: Jar | None = None
    """What its chain has kept, where the crawl keeps cookies. None if that is nothing."""
    identity: LeasedIdentity | None = None
    """The identity that its request is sent with. Set for every task with a session, and for no
    other. One that is logged out makes the lease the permission to log in instead; further requests
    of the login ask for a turn each: see `WorkSource.turn`."""

    def now(self) -> float:
        """The frontier's time, which is the same for all workers whatever their own clocks say."""
        return self.clock_s + time.monotonic()


class Holding(msgspec.Struct, frozen=True, array_like=True):
    """What a worker has of a host that it shares with others."""

    in_flight: int
    """Requests of shared leases that are at the host now. One that failed counts until its outcome
    is finished: the frontier is to hear of a host that is down before the next one is sent."""
    unsent: int
    """Shared leases whose requests have not been sent."""


class Ask(msgspec.Struct, frozen=True):
    """A worker asks for work: who it is, and what it has to do it with. Whatever decides which
    tasks a worker can take belongs here: identities it holds, exits, the fetchers it has."""

    worker: str
    room: int
    """How many tasks it can take."""
    holdings: dict[str, Holding] = {}
    """By host, what it has of those that it shares: all of which it was ever told a share, until it
    is told 0 and has said that nothing of its own is there."""
    pools: tuple[str, ...] = ()
    """The pools whose exits it knows the addresses of, and the groups whose accounts it knows the
    passwords of. It gets no tasks of others."""
    slots: int = 0
    """How many tasks by exits, or with accounts, it can take: they are sent at once, so none is
    taken ahead."""


class Grant(msgspec.Struct):
    """The answer to an `Ask`."""

    state: CrawlState
    leases: list[Lease] = []
    shares: dict[str, int] = {}
    """By host, how many requests of shared leases the worker may have in flight from now on. Says
    so of every host that the ask named, and of those whose tasks are handed out shared. 0: none may
    be sent, and what was not sent is to be given back."""
    wait_s: float | None = None
    """When asking again makes sense; None if only new work can change anything."""
    has_waiting: bool = False
    """Whether tasks wait, beside these. Where fewer were granted than asked for, they may not be
    sent yet."""
    epoch: int = 0
    """Which crawl of this name it is: another number means that it was started over."""
    decided: float = 0.0
    """time.monotonic() at or before the moment of the grant: `policy.SEND_SLACK_S` runs from it."""


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


class Record(msgspec.Struct, kw_only=True):
    """All the frontier knows of one task."""

    fingerprint: bytes
    task: Task
    """As it was added, but without its cookies, and without fields that only a later version knows:
    who asks shows it. Of tasks that are done or dropped a backend may keep less: then it is the one
    that was asked for, and the page log of the results knows more."""
    state: TaskState
    losses: int = 0
    kind: FailureKind | None = None
    """Of dead tasks, why."""
    died_at: float | None = None
    """Of dead tasks, when."""
    reason: str = ""
    detail: str = ""
    due: float | None = None
    """When a delayed task is ready again, or a lease expires."""
    worker: str = ""

    def __post_init__(self) -> None:
        self.task = without_unknown(self.task)
        if self.task.cookies is not None:
            self.task = msgspec.structs.replace(self.task, cookies=None)

    @property
    def place(self) -> DeadPlace:
        """Of a dead task, where the others go on."""
        return DeadPlace(self.died_at or 0.0, self.fingerprint)


class DeadPlace(NamedTuple):
    """A place among the dead of a crawl, which are in the order of their deaths. It stays one when
    the task that was there is retried or purged."""

    died_at: float
    fingerprint: bytes


class DeadFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which dead tasks are meant: those that fit all that is said."""

    kind: FailureKind | None = None
    host: str | None = None
    """As `Task.site` has it."""
    fingerprints: Sequence[bytes] | None = None
    """These and no others. None: whatever their fingerprints are."""


ALL_DEAD = DeadFilter()


class Leased(msgspec.Struct, kw_only=True):
    """A task that is in somebody's hands."""

    fingerprint: bytes
    url: str
    host: str
    worker: str
    since: float
    """When it was handed out."""
    expires: float
    """When it is taken back, unless the worker is heard of before."""
    tries: int = 0
    """How often it had failed before."""


class Host(msgspec.Struct, kw_only=True):
    """How one host is being served."""

    host: str
    waiting: int = 0
    leased: int = 0
    done: int = 0
    failed: int = 0
    next_at: float = 0.0
    penalty_s: float = 0.0
    crawl_delay_s: float = 0.0
    latency_s: float = 0.0
    """How long it takes to answer, recently."""
    failures: int = 0
    """Failures in a row."""
    failures_by_kind: dict[FailureKind, int] = {}
    """Tries that have failed, ever: see `Stats.failures_by_kind`."""

    @property
    def is_broken(self) -> bool:
        """Whether it fails so often that it is only probed."""
        return Pace(failures=self.failures).is_broken


class Chain(msgspec.Struct, frozen=True):
    """Tasks that go one after the other."""

    name: str
    left: int
    """Those that have not ended."""


class HostOrder(StrEnum):
    """Which hosts to name first."""

    BUSIEST = "busiest"
    SLOWEST = "slowest"
    FAILING = "failing"


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


CANCELLED = "crawl '{}' was cancelled; --fresh starts it over"
"""What those are told who bring work to a cancelled crawl."""
