"""A model of the frontier in a few dictionaries: slow, obvious, and right. Backends are compared
with it.

It leaves out robots.txt, pushback, faults and the wait after a second loss, for which the suite has
separate tests. It does not decide how workers divide a host's room: it takes the shares that the
backend tells them, and checks that there was room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from shoal.config import Rules
from shoal.core.policy import parse_rate
from shoal.core.sharing import WANT_S
from shoal.frontier.values import (
    Added,
    Control,
    CrawlState,
    Entry,
    Lease,
    Outcome,
    TaskState,
    Verdict,
)

_STATE_AFTER = {
    Verdict.DONE: TaskState.DONE,
    Verdict.RETRY: TaskState.DELAYED,
    Verdict.DEAD: TaskState.DEAD,
    Verdict.DROPPED: TaskState.DROPPED,
    Verdict.RETURNED: TaskState.WAITING,
}


Place = tuple[int, float]
"""A growing number, and among tasks that come back in one step, the moment each was due."""

FRONT: Place = (0, 0.0)


@dataclass
class ModelTask:
    """One task. Within a host, the highest priority goes first, then the smallest place. Tasks with
    the same place may go in any order."""

    key: bytes
    host: str
    priority: int
    place: Place
    state: TaskState = TaskState.WAITING
    attempts: int = 0
    losses: int = 0
    due: float | None = None
    token: str = ""
    worker: str = ""
    leased_at: float = 0.0
    shared: bool = False
    """Whether its lease is part of its worker's share, and takes no room of its own."""
    chain: str | None = None
    turn: tuple[bool, int] = (False, 0)
    """Its place in the chain: the target of a redirect is next, then the task added first."""
    blocked: bool = False
    """Whether it waits for another task of its chain."""

    @property
    def rank(self) -> tuple[int, Place]:
        return -self.priority, self.place

    def move(self, state: TaskState, due: float | None = None) -> None:
        self.state, self.due, self.token, self.worker = state, due, "", ""
        self.shared = False


@dataclass
class ModelShare:
    """How much a worker may have in flight at a host, or has if that is more, and until when."""

    counted: int
    until: float


class Model:
    """One crawl that has been started."""

    def __init__(self, rules: Rules, now: float = 0.0) -> None:
        self.rules, self.now = rules, now
        self.interval_s = parse_rate(rules.rate).interval_s
        self.state, self.sealed = CrawlState.RUNNING, False
        self.tasks: dict[bytes, ModelTask] = {}
        self.next_at: dict[str, float] = {}
        self.shares: dict[tuple[str, str], ModelShare] = {}
        """By host and worker."""
        self.asked_at: dict[str, float] = {}
        """When each worker last asked. One that got nothing still counts for a while."""
        self.counts: Counter[str] = Counter()
        self._last_place = 0

    def _behind_all(self) -> int:
        self._last_place += 1
        return self._last_place

    def add(self, entries: Sequence[Entry]) -> Added:
        before = len(self.tasks)
        for entry in entries:
            key, task, place = entry.fingerprint, entry.task, (self._behind_all(), 0.0)
            new = ModelTask(key, task.site, task.priority, place, chain=task.chain)
            new.blocked, new.turn = task.chain is not None, (not task.redirects, place[0])
            self.tasks.setdefault(key, new)
        added = len(self.tasks) - before
        self.counts["duplicates"] += len(entries) - added
        if self.state is CrawlState.FINISHED and added:
            self.state = CrawlState.RUNNING
        return Added(added, len(entries) - added)

    def reclaim(self) -> None:
        behind = self._behind_all()
        for task in self.tasks.values():
            if task.due is not None and task.due <= self.now:
                if task.state is TaskState.LEASED:
                    self.lose(task)
                else:
                    task.place = (behind, task.due)
                    task.move(TaskState.WAITING)
        self.advance_chains()

    def advance_chains(self) -> None:
        """Release the next task of each chain, unless another one of it is released already."""
        behind = self._behind_all()
        chains: dict[str, list[ModelTask]] = {}
        for task in self.in_state(TaskState.WAITING, TaskState.DELAYED, TaskState.LEASED):
            if task.chain is not None:
                chains.setdefault(task.chain, []).append(task)
        for chain in chains.values():
            if all(task.blocked for task in chain):
                first = min(chain, key=lambda task: task.turn)
                first.blocked, first.place = False, (behind, 0.0)

    def lose(self, task: ModelTask) -> None:
        task.losses += 1
        self.counts["lost"] += 1
        task.place = FRONT
        poison = task.losses >= self.rules.max_losses
        task.move(TaskState.DEAD if poison else TaskState.WAITING)

    def pages_left(self) -> int:
        """How many more tasks `max_pages` allows to lease."""
        used = len(self.in_state(TaskState.DONE, TaskState.DEAD, TaskState.LEASED))
        return len(self.tasks) if self.rules.max_pages is None else self.rules.max_pages - used

    def next_up(self) -> dict[str, list[ModelTask]]:
        """For each host, the tasks of which one is leased next. Only hosts with room, or whose
        holders can be told to share."""
        if self.state is not CrawlState.RUNNING or self.pages_left() <= 0:
            return {}
        waiting = [task for task in self.in_state(TaskState.WAITING) if not task.blocked]
        up: dict[str, list[ModelTask]] = {}
        for host in {task.host for task in waiting}:
            if self.room_left(host) > 0 or not self.interval_s:
                queue = [task for task in waiting if task.host == host]
                first = min(task.rank for task in queue)
                up[host] = [task for task in queue if task.rank == first]
        return up

    def ready(self) -> dict[str, list[ModelTask]]:
        """The same, only for hosts that may be hit now."""
        up = self.next_up()
        return {
            host: tasks for host, tasks in up.items() if self.next_at.get(host, 0.0) <= self.now
        }

    def room_left(self, host: str, but: str = "") -> int:
        """The free room of a host, as if the worker `but` had none."""
        plain = [t for t in self.in_state(TaskState.LEASED) if t.host == host and not t.shared]
        shares = [
            share.counted
            for (at, worker), share in self.shares.items()
            if at == host and worker != but and share.until > self.now
        ]
        return self.rules.concurrency_per_host - len(plain) - sum(shares)

    def share(self, host: str, worker: str, told: int, in_flight: int) -> None:
        """Note that a worker may have `told` requests in flight from now on."""
        assert 0 <= told <= max(self.room_left(host, but=worker), 0)
        counted = max(told, in_flight)
        self.shares[host, worker] = ModelShare(counted, self.now + self.rules.lease_s)

    def is_alone(self, worker: str) -> bool:
        """Whether no other worker has asked lately."""
        return not any(self.has_asked(other) for other in self.asked_at if other != worker)

    def has_asked(self, worker: str) -> bool:
        """Whether a worker asked so lately that it counts even if it got nothing."""
        return worker in self.asked_at and self.asked_at[worker] + WANT_S > self.now

    def lease(self, task: ModelTask, lease: Lease, worker: str) -> None:
        assert lease.shared or self.room_left(task.host) > 0
        task.move(TaskState.LEASED, self.now + self.rules.lease_s)
        task.token, task.worker, task.leased_at = lease.token, worker, self.now
        task.shared = lease.shared
        self.next_at[task.host] = self.now + self.interval_s

    def wait_s(self) -> float | None:
        """In how many seconds asking for work may give another answer. None: not by waiting."""
        if self.state is not CrawlState.RUNNING:
            return None
        moments = [self.next_at.get(host, 0.0) for host in self.next_up()]
        moments += [task.due for task in self.tasks.values() if task.due is not None]
        return max(min(moments) - self.now, 0.0) if moments else None

    def owned(self, lease: Lease) -> ModelTask | None:
        task = self.tasks.get(lease.fingerprint)
        return task if task and task.token == lease.token else None

    def finish(self, outcomes: Sequence[Outcome]) -> list[Lease]:
        stale, follow_ups = [], list[Entry]()
        for outcome in outcomes:
            task = self.owned(outcome.lease)
            if task is None:
                stale.append(outcome.lease)
            else:
                self._end_try(task, outcome)
                follow_ups += outcome.follow_ups
        self.add(follow_ups)
        return stale

    def _end_try(self, task: ModelTask, outcome: Outcome) -> None:
        retry = outcome.verdict is Verdict.RETRY
        task.attempts += retry or outcome.verdict is Verdict.DEAD
        self.counts["retries"] += retry
        if not outcome.sent and self.next_at[task.host] == task.leased_at + self.interval_s:
            self.next_at[task.host] = self.now
        task.place = FRONT
        state = _STATE_AFTER[outcome.verdict]
        if state is TaskState.WAITING and outcome.retry_in_s > 0:
            state = TaskState.DELAYED
        is_delayed = state is TaskState.DELAYED
        task.move(state, self.now + outcome.retry_in_s if is_delayed else None)

    def retry(self, dead: Iterable[ModelTask]) -> None:
        behind = self._behind_all()
        for task in dead:
            task.move(TaskState.WAITING)
            task.place = (behind, 0.0)
            task.blocked, task.turn = task.chain is not None, (True, task.turn[1])
            task.attempts = task.losses = 0
            if self.state is CrawlState.FINISHED:
                self.state = CrawlState.RUNNING

    def purge(self, dead: Iterable[ModelTask]) -> None:
        for task in dead:
            task.move(TaskState.DROPPED)

    def control(self, action: Control) -> None:
        match action:
            case Control.SEAL:
                self.sealed = True
            case Control.PAUSE:
                self.state = CrawlState.PAUSED
            case Control.RESUME:
                self.state = CrawlState.RUNNING

    def start(self) -> None:
        if self.state is CrawlState.FINISHED:
            self.state, self.sealed = CrawlState.RUNNING, False

    def settle(self) -> None:
        """End a step: release tasks of chains, and finish the crawl if nothing is left."""
        self.advance_chains()
        limit = self.rules.max_pages
        full = limit is not None and len(self.in_state(TaskState.DONE, TaskState.DEAD)) >= limit
        left = () if full else (TaskState.WAITING, TaskState.DELAYED)
        if self.sealed and not self.state.over and not self.in_state(TaskState.LEASED, *left):
            self.state = CrawlState.FINISHED

    def in_state(self, *states: TaskState) -> list[ModelTask]:
        return [task for task in self.tasks.values() if task.state in states]
