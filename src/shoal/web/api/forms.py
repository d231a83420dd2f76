"""The types of answers, for the description of the API. insight/json.py makes most of the answers;
a test compares them with these types."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

from shoal.coordinator.plan import Planned
from shoal.core.causes import Cause
from shoal.core.failures import FailureKind
from shoal.core.shapes import Trap
from shoal.core.task import Task
from shoal.frontier.feeding import FeedPulse
from shoal.frontier.values import CrawlState, Host, Pulse, Stats
from shoal.insight.versions import AtWork

T = TypeVar("T")


class Page(msgspec.Struct, Generic[T], kw_only=True):
    """A page of a list."""

    items: list[T]
    total: int | None = None
    """The length of the whole list, where that is known."""
    cursor: str | None = None
    """Where the next page begins. None: this is the last one."""


class CrawlForm(Stats, kw_only=True):
    """A crawl and its counters."""

    total: int
    failed: int
    remaining: int
    elapsed_s: float
    eta_s: float | None
    duplicate_rate: float
    block_rate: float


class HostForm(Host, kw_only=True):
    """How one host is being served."""

    broken: bool


class SnapshotForm(CrawlForm, kw_only=True):
    """A crawl with its workers and hosts."""

    late: str | None
    traps: list[Trap]
    causes: list[Cause]
    failure_concentration: float
    workers: list[Pulse]
    versions: list[AtWork]
    hosts: list[HostForm]
    slowest_hosts: list[HostForm]
    failing_hosts: list[HostForm]
    pools: list[dict[str, Any]]
    waiting_for_exits: int
    sessions: list[dict[str, Any]]
    lanes: list[dict[str, Any]]
    feeds: list[FeedPulse]


class StateForm(msgspec.Struct):
    """The state that a crawl is in now."""

    crawl: str
    state: CrawlState


class DeadForm(msgspec.Struct, kw_only=True):
    """A task that failed for good."""

    fingerprint: str
    url: str
    host: str
    kind: FailureKind | None
    died_at: float | None
    reason: str
    tries: int
    handler: str
    session: str | None
    losses: int
    traceback: str
    task: Task


class CountForm(msgspec.Struct, kw_only=True):
    """How many tasks were affected, or with `dry_run` would be."""

    count: int
    dry_run: bool


class SeededForm(msgspec.Struct, kw_only=True):
    """How many seeds were added, known already, or wrong."""

    crawl: str
    added: int
    duplicates: int
    bad: int
    errors: list[Any] = []


class PlannedForm(Planned, kw_only=True):
    """A schedule."""

    last: dict[str, Any] | None = None  # type: ignore[assignment]


class SchedulesForm(msgspec.Struct):
    """All schedules, and who leads."""

    leader: str | None
    schedules: list[PlannedForm]


class BegunForm(msgspec.Struct):
    """A run that was asked for."""

    crawl: str
    is_led: bool
    """Whether a coordinator leads, which will begin the run. Otherwise the run waits for one."""


class PausedForm(msgspec.Struct):
    """Whether a schedule is paused."""

    name: str
    is_paused: bool
