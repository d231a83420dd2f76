"""Random lives of a worker's leases: whatever happens in whatever order, some things hold."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from shoal.core.task import Task
from shoal.frontier.values import CrawlState, Grant, Lease, Outcome, Verdict
from shoal.worker.leasing import AHEAD_PER_SLOT, HELD_PER_SLOT, MAX_HELD_BYTES, STUCK_S, Leasing
from support.state_machines import lives

TASK = Task(url="http://shop.example/", site="shop.example")
KINDS = ["plain", "paced", "crowded", "alone"]

LEASE_S = 30.0
LATE = 8
"""Leases that are granted before a worker is told to stop: after that, little happens."""


class LeasesMachine(RuleBasedStateMachine):
    """A frontier, slots and a committer around `Leasing`, each as wilful as it may be."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.held_bytes = 0
        self.busy_since: float | None = None
        self.is_saving = False
        self.asked = 0
        """Of the open question."""
        self.waiting: dict[str, Lease] = {}
        self.visiting: dict[str, Lease] = {}
        self.ended: dict[str, Verdict] = {}
        """What was visited or given back, and is not finished."""
        self.leases: dict[str, Lease] = {}
        """All that were ever granted."""
        self.finished: set[str] = set()
        self.is_draining = False
        self._names = count()

    @property
    def is_empty(self) -> bool:
        return not self.ended

    @property
    def held(self) -> set[str]:
        return self.leases.keys() - self.finished

    @initialize(slots=st.integers(1, 3))
    def begin(self, slots: int) -> None:
        self.slots = slots
        self.leasing = Leasing(slots)
        self.leasing.begin(self.now, LEASE_S)

    # Questions and answers

    @precondition(lambda self: not self.asked)
    @rule()
    def ask(self) -> None:
        question = self.leasing.ask(self.now, self)
        self.asked = question.room if question is not None else 0
        if self.asked:
            assert not self.is_draining
            assert not self.leasing.is_over
            assert self.held_bytes <= MAX_HELD_BYTES
            assert not any(self.leases[token].alone for token in self.held)

    @precondition(lambda self: not self.asked)
    @rule(what=st.sampled_from(KINDS))
    def ask_and_get_all(self, what: str) -> None:
        self.ask()
        if self.asked:
            self.answer(1.0, None, what, CrawlState.RUNNING)

    @precondition(lambda self: self.asked)
    @rule()
    def ask_meanwhile(self) -> None:
        assert self.leasing.ask(self.now, self) is None

    @precondition(lambda self: self.asked)
    @rule(
        share=st.sampled_from([1.0, 0.5, 0.0]),
        wait_s=st.sampled_from([None, 0.0, 1.0]),
        what=st.sampled_from(KINDS),
        state=st.sampled_from([CrawlState.RUNNING] * 5 + [CrawlState.CANCELLED]),
    )
    def answer(self, share: float, wait_s: float | None, what: str, state: CrawlState) -> None:
        """A task to be alone with is granted to those who hold nothing else, as the port says."""
        number = 0 if state.over else round(self.asked * share)
        if what == "alone":
            number = min(number, 0 if self.held else 1)
        leases = [self._lease(what) for _ in range(number)]
        visit, given_back = self.leasing.granted(
            Grant(state, leases, wait_s=wait_s, decided=self.now), self.now
        )
        self.asked = 0
        self.waiting.update((lease.token, lease) for lease in leases)
        self._visit([lease for lease, _ in visit])
        self._take_back(given_back)
        assert not (self.is_draining and visit)

    @precondition(lambda self: self.asked)
    @rule(is_gone=st.booleans())
    def fail(self, is_gone: bool) -> None:
        if is_gone:
            self.leasing.crawl_gone()
        else:
            self.leasing.not_granted()
        self.asked = 0

    @precondition(lambda self: self.leasing.is_over and not self.asked)
    @rule()
    def begin_again(self) -> None:
        self.leasing.begin(self.now, LEASE_S)

    # Visits

    @precondition(lambda self: self.visiting)
    @rule(number=st.integers(0, 10))
    def end_a_visit(self, number: int) -> None:
        token = list(self.visiting)[number % len(self.visiting)]
        del self.visiting[token]
        self.ended[token] = Verdict.DONE
        outcome = Outcome(lease=self.leases[token], verdict=Verdict.DONE)
        following = self.leasing.visit_over(outcome)
        if following is not None:
            self._visit([following[0]])

    @precondition(lambda self: self.visiting)
    @rule()
    def end_all_visits(self) -> None:
        for _ in range(len(self.visiting)):
            self.end_a_visit(0)

    @precondition(lambda self: not self.asked)
    @rule()
    def visit_while_nothing_is_committed(self) -> None:
        for _ in range(HELD_PER_SLOT):
            self.ask_and_get_all("plain")
            self.end_all_visits()
            self.never_more_held_than_may_be()

    # Commits

    @precondition(lambda self: self.ended)
    @rule(number=st.integers(1, 30), is_apart=st.booleans())
    def commit(self, number: int, is_apart: bool) -> None:
        batch = list(self.ended)[:number]
        outcomes = [Outcome(lease=self.leases[t], verdict=self.ended.pop(t)) for t in batch]
        if is_apart:
            self.leasing.finished_apart()
        self.finished.update(batch)
        self.leasing.finished(outcomes, self.now)

    @rule(held_bytes=st.sampled_from([0] * 5 + [MAX_HELD_BYTES + 1]), is_busy=st.booleans())
    def keep_the_stores_busy(self, held_bytes: int, is_busy: bool) -> None:
        self.held_bytes = held_bytes
        self.busy_since = self.now if is_busy else None

    # Time, and the end

    @rule(seconds=st.sampled_from([0.001, 0.01, 0.05, STUCK_S]))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self._take_back(self.leasing.give_back_stuck(self.now))

    @precondition(lambda self: self.waiting)
    @rule()
    def lose_some(self) -> None:
        self._take_back(self.leasing.give_back_ready())
        assert not self.waiting

    @precondition(lambda self: len(self.leases) > LATE)
    @rule()
    def drain(self) -> None:
        self.is_draining = True
        self._take_back(self.leasing.drain())

    # What holds

    @invariant()
    def never_more_visits_than_slots(self) -> None:
        assert self.leasing.in_flight == len(self.visiting) <= self.slots

    @invariant()
    def never_more_held_than_may_be(self) -> None:
        assert self.leasing.held.keys() == self.held
        assert len(self.held) + self.asked <= self.slots * HELD_PER_SLOT

    @invariant()
    def never_more_waits_than_may(self) -> None:
        assert [lease.token for lease, _ in self.leasing.ready] == list(self.waiting)
        assert len(self.waiting) <= self.slots * AHEAD_PER_SLOT

    @invariant()
    def nothing_waits_beside_a_free_slot(self) -> None:
        assert not self.waiting or len(self.visiting) == self.slots

    @invariant()
    def nothing_is_beside_what_must_be_alone(self) -> None:
        if any(self.leases[token].alone for token in self.held):
            assert len(self.held) == 1

    @invariant()
    def nobody_waits_for_nothing(self) -> None:
        """With nothing in hand, it is soon time to ask, or there are the stores to wait for."""
        if not self.held and not self.asked and self.held_bytes <= MAX_HELD_BYTES:
            assert self.leasing.wait_s(self.now, self) is not None

    def teardown(self) -> None:
        """Told to stop, it ends all it holds."""
        if not hasattr(self, "leasing"):
            return
        self.drain()
        if self.asked:
            self.answer(1.0, None, "plain", CrawlState.RUNNING)
        assert not self.waiting
        while self.visiting:
            self.end_a_visit(0)
        if self.ended:
            self.commit(len(self.ended), True)
        assert self.leasing.held == {}
        assert self.finished == self.leases.keys()

    def _lease(self, what: str) -> Lease:
        token = f"{next(self._names)}"
        flags: dict[str, Any] = {} if what == "plain" else {what: True}
        self.leases[token] = Lease(token.encode(), token, TASK, **flags)
        return self.leases[token]

    def _visit(self, leases: Sequence[Lease]) -> None:
        for lease in leases:  # A KeyError: it was visited or given back before.
            self.visiting[lease.token] = self.waiting.pop(lease.token)

    def _take_back(self, leases: Sequence[Lease]) -> None:
        for lease in leases:
            del self.waiting[lease.token]
            self.ended[lease.token] = Verdict.RETURNED


TestLeasesLives = lives(LeasesMachine, 200, steps=60)
