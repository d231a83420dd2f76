"""Drives a frontier and the model through the same random steps, and compares them at each one."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Coroutine
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from contract.frontier.model import Model
from shoal.config import Rules
from shoal.core.sharing import SHARE_WAIT_S
from shoal.errors import ConfigError
from shoal.frontier.values import (
    Control,
    CrawlState,
    DeadFilter,
    Entry,
    Grant,
    Lease,
    Outcome,
    TaskState,
    Verdict,
)
from support.frontiers import CRAWL, Backend, Client, entry, open_rules, outcome
from support.sharers import Sharer

T = TypeVar("T")

# Few tasks, so that the same ones are leased, lost, finished and found again and again. Most have
# the same priority, so that their order matters. Some belong to chains.
CHAINS = {1: "one", 2: "one", 3: "one", 6: "two", 8: "two", 9: "one", 11: "one"}
REDIRECTED = 9
ENTRIES = [
    entry(
        f"h{n % 2}.example/{n}",
        priority=n // 10,
        chain=CHAINS.get(n),
        redirects=["http://from.example/"] if n == REDIRECTED else [],
    )
    for n in range(12)
]
BY_KEY = {entry.fingerprint: entry for entry in ENTRIES}
SEEDS = ENTRIES[:8]
WORKERS = ["one", "two"]
HOSTS = ["h0.example", "h1.example"]
GIVEN_BACK = {"verdict": Verdict.RETURNED, "sent": False}
# Verdicts after which a task comes back are first: hypothesis prefers those, for longer runs.
VERDICTS = [Verdict.RETRY, Verdict.RETURNED, Verdict.DEAD, Verdict.DONE, Verdict.DROPPED]
LEASE_S = 4.0

rules = st.builds(
    open_rules,
    rate=st.sampled_from(["none", "1/s"]),
    max_pages=st.sampled_from([None, 4]),
    concurrency_per_host=st.sampled_from([1, 2]),
    lease_s=st.just(LEASE_S),
    max_losses=st.sampled_from([1, 2]),
)
some_entries = st.lists(st.sampled_from(ENTRIES), max_size=2)
some_leases = st.lists(st.integers(0, 8), min_size=1, max_size=4)
some_ends = st.lists(
    st.fixed_dictionaries(
        {
            "verdict": st.sampled_from(VERDICTS),
            "follow_ups": some_entries,
            "retry_in_s": st.sampled_from([0.0, 2.0]),
            "sent": st.booleans(),
        }
    ),
    min_size=1,
    max_size=4,
)
limits = st.integers(1, 4)
some_keys = st.none() | st.lists(st.sampled_from([e.fingerprint for e in ENTRIES]), max_size=3)


class FrontierMachine(RuleBasedStateMachine):
    """Subclasses open the backend. The attribute `TestCase` of a subclass is the test."""

    def __init__(self) -> None:
        super().__init__()
        self.leases: list[Lease] = []  # All leases ever granted; most of them are stale.
        self.fleet = {worker: Sharer() for worker in WORKERS}
        self.runner = asyncio.Runner()
        self.folder = TemporaryDirectory()
        self.backend = self.make_backend(Path(self.folder.name))

    def make_backend(self, folder: Path) -> Backend:
        raise NotImplementedError

    def teardown(self) -> None:
        self.run(self.backend.check())
        self.run(self.backend.close())
        self.runner.close()
        self.folder.cleanup()

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(call)

    @property
    def client(self) -> Client:
        return self.backend.client()

    def chosen(self, how_long_ago: int) -> Lease:
        return self.leases[-1 - how_long_ago % len(self.leases)]

    @initialize(rules=rules, sealed=st.booleans())
    def begin(self, rules: Rules, sealed: bool) -> None:
        self.run(self.backend.frontier.start(CRAWL, rules))
        self.model = Model(rules)
        self.add(SEEDS)
        if sealed:
            self.control(Control.SEAL)

    @rule(entries=st.lists(st.sampled_from(ENTRIES), min_size=1, max_size=4))
    def add(self, entries: list[Entry]) -> None:
        assert self.run(self.client.add(*entries)) == self.model.add(entries)
        self.model.settle()

    @rule(worker=st.sampled_from(WORKERS), limit=limits)
    def lease(self, worker: str, limit: int) -> None:
        said = self.fleet[worker].holdings()
        self.granted(worker, limit, self.run(self.backend.client(worker).ask(limit, said)))

    def granted(self, worker: str, limit: int, grant: Grant) -> None:
        """Check that the model allows this grant, and repeat it there."""
        if self.model.state is CrawlState.RUNNING:
            self.model.reclaim()
        # At most what was asked for, and within that at least one of every host that must give.
        limit = min(limit, self.model.pages_left())
        is_ready = limit > 0 and bool(self.model.ready())
        assert min(limit, self.must_give(worker)) <= len(grant.leases) <= max(limit, 0)
        self.share(worker, grant)
        for lease in grant.leases:
            (task,) = [
                task
                for tasks in self.model.ready().values()
                for task in tasks
                if task.key == lease.fingerprint
            ]
            assert lease.task.retry_count == task.attempts
            assert not lease.shared or grant.shares[task.host] > 0
            self.model.lease(task, lease, worker)
        self.model.settle()
        assert grant.state is self.model.state
        expected = self.model.wait_s()
        if expected is not None and is_ready and not grant.leases:
            expected = max(expected, SHARE_WAIT_S)
        assert grant.wait_s == (None if expected is None else pytest.approx(expected, abs=0.01))
        self.leases += grant.leases
        self.end(self.fleet[worker].granted(grant), [GIVEN_BACK] * len(ENTRIES))

    def must_give(self, worker: str) -> int:
        """How many hosts must give a task: those with room, if no other worker wants it."""
        if self.model.interval_s:
            return len(self.model.ready())
        if not self.model.is_alone(worker):
            return 0
        return sum(self.model.room_left(host, but=worker) > 0 for host in self.model.ready())

    def share(self, worker: str, grant: Grant) -> None:
        """Note the shares in a grant. A worker's requests in flight count if they are more."""
        said = self.fleet[worker].said
        assert said.keys() <= grant.shares.keys()
        assert not any(grant.shares.values()) or not self.model.interval_s
        for host, told in grant.shares.items():
            in_flight = said[host].in_flight if host in said else 0
            self.model.share(host, worker, told, in_flight)
        self.model.asked_at[worker] = self.model.now

    @rule(worker=st.sampled_from(WORKERS), host=st.sampled_from(HOSTS), count=st.integers(1, 2))
    def answer(self, worker: str, host: str, count: int) -> None:
        """Some requests are answered: until they are saved, they take no room."""
        self.fleet[worker].answer(host, count)

    @rule(worker=st.sampled_from(WORKERS), ends=some_ends)
    def lease_and_finish(self, worker: str, ends: list[dict[str, Any]]) -> None:
        before = len(self.leases)
        self.lease(worker, len(ends))
        self.end(self.leases[before:], ends)

    @precondition(lambda self: self.leases)
    @rule(which=some_leases, ends=some_ends)
    def finish(self, which: list[int], ends: list[dict[str, Any]]) -> None:
        self.end(list(map(self.chosen, which)), ends)

    def end(self, leases: list[Lease], ends: list[dict[str, Any]]) -> None:
        tries = self.tries_of(leases, ends)
        assert self.run(self.client.finish(*tries)) == self.model.finish(tries)
        self.model.settle()

    def tries_of(self, leases: list[Lease], ends: list[dict[str, Any]]) -> list[Outcome]:
        """The outcomes of leases, which are no longer in flight."""
        for sharer in self.fleet.values():
            sharer.drop(leases)
        return [outcome(lease, **end) for lease, end in zip(leases, ends, strict=False)]

    @rule(worker=st.sampled_from(WORKERS), which=some_leases, ends=some_ends, limit=limits)
    def exchange(
        self, worker: str, which: list[int], ends: list[dict[str, Any]], limit: int
    ) -> None:
        """Finish and lease in one step, as busy workers do."""
        tries = self.tries_of(list(map(self.chosen, which)) if self.leases else [], ends)
        client, said = self.backend.client(worker), self.fleet[worker].holdings()
        stale, grant = self.run(client.exchange(*tries, limit=limit, holdings=said))
        assert stale == self.model.finish(tries)
        self.model.settle()
        self.granted(worker, limit, grant)

    @precondition(lambda self: self.leases)
    @rule(which=some_leases)
    def renew(self, which: list[int]) -> None:
        renewed = list(map(self.chosen, which))
        stale = [lease for lease in renewed if not self.model.owned(lease)]
        assert self.run(self.client.renew(*renewed)) == stale
        for lease in renewed:
            if task := self.model.owned(lease):
                task.due = self.model.now + LEASE_S
                if task.shared and (share := self.model.shares.get((task.host, task.worker))):
                    share.until = task.due

    @rule(worker=st.sampled_from(WORKERS))
    def release(self, worker: str) -> None:
        held = [task for task in self.model.tasks.values() if task.worker == worker]
        assert self.run(self.backend.frontier.release(CRAWL, worker)) == len(held)
        for task in held:
            self.model.lose(task)
        self.model.shares = {
            at: share for at, share in self.model.shares.items() if at[1] != worker
        }
        self.fleet[worker] = Sharer()
        self.model.settle()
        assert worker not in self.run(self.backend.frontier.holders(CRAWL))

    @precondition(lambda self: self.model.sealed)
    @rule(worker=st.sampled_from(WORKERS))
    def work_off(self, worker: str) -> None:
        """Finish all tasks. A sealed crawl that is not paused ends then."""
        while (wait_s := self.model.wait_s()) is not None:
            # Sums of quarters are exact, so no deadline is hit only through rounding.
            self.advance(math.ceil(wait_s * 4) / 4)
            before = len(self.leases)
            self.lease(worker, 4)
            self.end(self.leases[before:], [{}] * 4)
            if not self.leases[before:]:  # The other worker holds the room, and is gone.
                self.advance(0.25)

    @rule(seconds=st.sampled_from([0.25, 1.0, 2.5, LEASE_S + 0.25]))
    def advance(self, seconds: float) -> None:
        self.run(self.backend.advance(seconds))
        self.model.now += seconds
        for (host, worker), share in [*self.model.shares.items()]:
            if share.until <= self.model.now:  # All leases of the share have expired.
                self.fleet[worker].leave(host)
                del self.model.shares[host, worker]

    @rule(action=st.sampled_from([Control.SEAL, Control.PAUSE, Control.RESUME]))
    def control(self, action: Control) -> None:
        if self.model.state.over and action is not Control.SEAL:
            with pytest.raises(ConfigError):
                self.run(self.client.control(action))
        else:
            self.model.control(action)
            self.model.settle()
            assert self.run(self.client.control(action)) is self.model.state

    @rule(keys=some_keys, purge=st.booleans())
    def retry_or_purge(self, keys: list[bytes] | None, purge: bool) -> None:
        dead = [t for t in self.model.in_state(TaskState.DEAD) if keys is None or t.key in keys]
        frontier = self.backend.frontier
        call = (
            frontier.purge_dead(CRAWL, DeadFilter(fingerprints=keys))
            if purge
            else frontier.retry_dead(CRAWL, DeadFilter(fingerprints=keys))
        )
        assert self.run(call) == len(dead)
        self.model.purge(dead) if purge else self.model.retry(dead)
        self.model.settle()

    @rule()
    def close_and_reopen(self) -> None:
        self.run(self.backend.reopen())

    @rule()
    def start_again(self) -> None:
        self.model.start()
        stats = self.run(self.backend.frontier.start(CRAWL, self.model.rules))
        assert stats.state is self.model.state

    @precondition(lambda self: self.model.sealed)
    @rule()
    def start_over(self) -> None:
        if self.model.state.over:
            with pytest.raises(ConfigError):
                self.run(self.client.control(Control.CANCEL))
        else:
            assert self.run(self.client.control(Control.CANCEL)) is CrawlState.CANCELLED
            assert self.run(self.client.stats()).remaining == 0
        self.run(self.backend.frontier.forget(CRAWL))
        self.run(self.backend.frontier.start(CRAWL, self.model.rules))
        self.model = Model(self.model.rules, self.model.now)
        self.fleet = {worker: Sharer() for worker in WORKERS}

    @invariant()
    def no_host_has_more_in_flight_than_it_may(self) -> None:
        plain = [task for task in self.model.in_state(TaskState.LEASED) if not task.shared]
        for host in HOSTS:
            in_flight = sum(sharer.may_have(host) for sharer in self.fleet.values())
            in_flight += sum(task.host == host for task in plain)
            assert in_flight <= self.model.rules.concurrency_per_host

    @invariant()
    def every_task_is_where_the_model_has_it(self) -> None:
        for task in self.model.tasks.values():
            found = self.run(self.backend.frontier.find(CRAWL, BY_KEY[task.key]))
            assert found is not None
            assert (found.state, found.worker) == (task.state, task.worker)
            if found.state not in (TaskState.DONE, TaskState.DROPPED):
                real = (found.task.retry_count, found.losses)
                assert real == (task.attempts, task.losses)

    @invariant()
    def the_counters_are_those_of_the_model(self) -> None:
        stats = self.run(self.client.stats())
        model = {state: len(self.model.in_state(state)) for state in TaskState}
        assert {state: getattr(stats, state) for state in TaskState} == model
        assert stats.added == len(self.model.tasks)
        assert stats.state is self.model.state
        for name in ("duplicates", "retries", "lost"):
            assert getattr(stats, name) == self.model.counts[name]

    @invariant()
    def the_holders_of_the_model_are_known(self) -> None:
        """The frontier lists these holders. It may also list workers that asked just now and may
        wait for a share."""
        holders = {task.worker for task in self.model.in_state(TaskState.LEASED)}
        holders |= {worker for (_, worker), share in self.model.shares.items() if share.counted}
        known = set(self.run(self.backend.frontier.holders(CRAWL)))
        assert holders <= known <= holders | set(filter(self.model.has_asked, WORKERS))
