"""What the frontier tells about single tasks, hosts and chains."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec

from shoal.core.failures import FailureKind
from shoal.core.policy import Pace
from shoal.core.task import Task, without_unknown
from shoal.frontier.values.states import TaskState


class Record(msgspec.Struct, kw_only=True):
    """All that the frontier knows about one task."""

    fingerprint: bytes
    task: Task
    """The task as it was added, but without its cookies and without fields that only a later
    version knows, because records are shown to people."""
    state: TaskState
    is_forgotten: bool = False
    """Whether only the end of the task is known: a backend need not keep tasks that are done or
    dropped. Then `task` is the one that was asked for, and the page log of the results has more."""
    losses: int = 0
    kind: FailureKind | None = None
    """Why a dead task died."""
    died_at: float | None = None
    """When a dead task died."""
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
        """The place of a dead task among the dead: the next page of a list begins after it."""
        return DeadPlace(self.died_at or 0.0, self.fingerprint)


class DeadPlace(NamedTuple):
    """A place in the list of a crawl's dead tasks, which is in the order of their deaths. It stays
    valid when the task at that place is retried or purged."""

    died_at: float
    fingerprint: bytes


class DeadFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Selects dead tasks: those that match all fields that are set."""

    kind: FailureKind | None = None
    host: str | None = None
    """The host, in the form of `Task.site`."""
    fingerprints: Sequence[bytes] | None = None
    """Only tasks with these fingerprints. None: any."""
    died_by: float | None = None
    """Only tasks that died at that moment or before. After people are told how many there are, this
    leaves out tasks that die before they decide."""


ALL_DEAD = DeadFilter()


class Leased(msgspec.Struct, kw_only=True):
    """A task that is leased to a worker."""

    fingerprint: bytes
    url: str
    host: str
    worker: str
    since: float
    """When it was handed out."""
    expires: float
    """When the lease expires, unless the worker renews it before."""
    tries: int = 0
    """How often the task had failed before."""


class Host(msgspec.Struct, kw_only=True):
    """The state of one host: its tasks, its pace and its failures."""

    host: str
    waiting: int = 0
    leased: int = 0
    done: int = 0
    failed: int = 0
    next_at: float = 0.0
    penalty_s: float = 0.0
    crawl_delay_s: float = 0.0
    latency_s: float = 0.0
    """How long the host has recently taken to answer."""
    failures: int = 0
    """Failures in a row."""
    failures_by_kind: dict[FailureKind, int] = {}
    """All tries that have failed: see `Stats.failures_by_kind`."""
    dry_s: float = 0.0
    """For how long it has had to wait for blocks of its tasks, which are with a carrier."""

    @property
    def is_broken(self) -> bool:
        """Whether it fails so often that it is only probed."""
        return Pace(failures=self.failures).is_broken


class Chain(msgspec.Struct, frozen=True):
    """A chain: tasks that go one after the other."""

    name: str
    left: int
    """How many of its tasks have not ended."""


class HostOrder(StrEnum):
    """Which hosts come first in a list of hosts."""

    BUSIEST = "busiest"
    SLOWEST = "slowest"
    FAILING = "failing"
