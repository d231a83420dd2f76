"""What the frontier knows of single tasks, hosts and chains, for whoever asks."""

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
    died_by: float | None = None
    """Those that died then or before. Who was told how many there are means those, though more die
    meanwhile."""


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
