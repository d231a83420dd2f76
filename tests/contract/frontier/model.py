"""A frontier in a few dictionaries: slow, obvious, and right. Real ones are compared with it.

It knows nothing of robots.txt, pushback and the wait after a second loss; the suite has tests of
their own for those.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from shoal.config import Rules
from shoal.frontier.port import (
    Added,
    Control,
    CrawlState,
    Entry,
    Lease,
    Outcome,
    TaskState,
    Verdict,
)
from shoal.policy import parse_rate

_STATE_AFTER = {
    Verdict.DONE: TaskState.DONE,
    Verdict.RETRY: TaskState.DELAYED,
    Verdict.DEAD: TaskState.DEAD,
    Verdict.DROPPED: TaskState.DROPPED,
    Verdict.RETURNED: TaskState.WAITING,
}


@dataclass
class ModelTask:
    """One task. Its place in the queue of its host is `rank`: the smallest goes first."""

    key: bytes
    host: str
    rank: tuple[int, int]
    state: TaskState = TaskState.WAITING
    attempts: int = 0
    losses: int = 0
    due: float | None = None
    token: str = ""
    worker: str = ""
    leased_at: float = 0.0

    def move(self, state: TaskState, due: float | None = None) -> None:
        self.state, self.due, self.token, self.worker = state, due, "", ""


class Model:
    """One crawl that has been started."""

    def __init__(self, rules: Rules, now: float = 0.0) -> None:
        self.rules, self.now = rules, now
        self.interval_s = parse_rate(rules.rate).interval_s
        self.state, self.sealed = CrawlState.RUNNING, False
        self.tasks: dict[bytes, ModelTask] = {}
        self.next_at: dict[str, float] = {}
        self.counts: Counter[str] = Counter()

    def add(self, entries: Sequence[Entry]) -> Added:
        before = len(self.tasks)
        for entry in entries:
            task, rank = entry.task, (-entry.task.priority, len(self.tasks))
            self.tasks.setdefault(entry.fingerprint, ModelTask(entry.fingerprint, task.site, rank))
        added = len(self.tasks) - before
        self.counts["duplicates"] += len(entries) - added
        if self.state is CrawlState.FINISHED and added:
            self.state = CrawlState.RUNNING
        return Added(added, len(entries) - added)

    def reclaim(self) -> None:
        for task in self.tasks.values():
            if task.due is not None and task.due <= self.now:
                if task.state is TaskState.LEASED:
                    self.lose(task)
                else:
                    task.move(TaskState.WAITING)

    def lose(self, task: ModelTask) -> None:
        task.losses += 1
        self.counts["lost"] += 1
        poison = task.losses >= self.rules.max_losses
        task.move(TaskState.DEAD if poison else TaskState.WAITING)

    def pages_left(self) -> int:
        """How many more may be handed out before the crawl has all the pages it wants."""
        used = len(self.in_state(TaskState.DONE, TaskState.LEASED))
        return len(self.tasks) if self.rules.max_pages is None else self.rules.max_pages - used

    def next_up(self) -> dict[str, ModelTask]:
        """The task that each host with room would hand out next."""
        if self.state is not CrawlState.RUNNING or self.pages_left() <= 0:
            return {}
        queue = sorted(self.in_state(TaskState.WAITING), key=lambda t: t.rank, reverse=True)
        busy = Counter(task.host for task in self.in_state(TaskState.LEASED))
        room = self.rules.concurrency_per_host
        return {task.host: task for task in queue if busy[task.host] < room}

    def ready(self) -> list[ModelTask]:
        """The tasks that may be handed out now, one per host."""
        up = self.next_up()
        return [task for host, task in up.items() if self.next_at.get(host, 0.0) <= self.now]

    def lease(self, task: ModelTask, token: str, worker: str) -> None:
        task.move(TaskState.LEASED, self.now + self.rules.lease_s)
        task.token, task.worker, task.leased_at = token, worker, self.now
        self.next_at[task.host] = self.now + self.interval_s

    def wait_s(self) -> float | None:
        """When asking for work may next give another answer."""
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
        task.move(_STATE_AFTER[outcome.verdict], self.now + outcome.retry_in_s if retry else None)

    def revive(self, dead: Iterable[ModelTask]) -> None:
        for task in dead:
            task.move(TaskState.WAITING)
            task.attempts = task.losses = 0
            if self.state is CrawlState.FINISHED:
                self.state = CrawlState.RUNNING

    def bury(self, dead: Iterable[ModelTask]) -> None:
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
        """At the end of every step: is the crawl finished?"""
        limit = self.rules.max_pages
        full = limit is not None and len(self.in_state(TaskState.DONE)) >= limit
        left = () if full else (TaskState.WAITING, TaskState.DELAYED)
        if self.sealed and not self.state.over and not self.in_state(TaskState.LEASED, *left):
            self.state = CrawlState.FINISHED

    def in_state(self, *states: TaskState) -> list[ModelTask]:
        return [task for task in self.tasks.values() if task.state in states]
