"""Random lives of a worker's shares: whatever the frontier tells it, and whenever."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import count

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from shoal.core.task import Task
from shoal.frontier.values import CrawlState, Grant, Holding, Lease, Outcome, Pushback, Verdict
from shoal.worker.leasing import HELD_PER_SLOT, STUCK_S, Leasing, Question
from support.state_machines import lives

SITES = ["a.example", "b.example"]
NUMBERS = st.integers(0, 10)
TOLD = st.fixed_dictionaries({site: st.sampled_from([6, 4, 2, 1, 0]) for site in SITES})
GIVEN = st.fixed_dictionaries({site: st.integers(0, 4) for site in [*SITES, "plain.example"]})

LEASE_S = 30.0
LATE = 40
"""Leases that are granted before a worker is told to stop: after that, little happens."""


class SharesMachine(RuleBasedStateMachine):
    """A frontier that keeps count of what it has told, slots and a committer around `Leasing`."""

    held_bytes = 0
    busy_since: float | None = None
    is_saving: bool = False
    is_empty = True

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.question: Question | None = None
        self.leases: dict[str, Lease] = {}
        """All that were ever granted."""
        self.waiting: dict[str, Lease] = {}
        self.visiting: dict[str, Lease] = {}
        self.at_host: dict[str, Lease] = {}
        """Those whose requests have not been answered, or failed and are not finished."""
        self.ended: dict[str, Verdict] = {}
        self.counted: Counter[str] = Counter()
        """What the frontier counts as ours, by site: others may have all the rest."""
        self.is_draining = False
        self._names = count()

    @initialize(slots=st.integers(1, 6))
    def begin(self, slots: int) -> None:
        self.slots = slots
        self.leasing = Leasing(slots)
        self.leasing.begin(self.now, LEASE_S)

    def in_flight(self, site: str) -> int:
        return sum(at.shared and at.task.site == site for at in self.at_host.values())

    def unsent(self, site: str) -> int:
        return sum(lease.shared and lease.task.site == site for lease in self.waiting.values())

    # Questions and answers

    @precondition(lambda self: self.question is None)
    @rule()
    def ask(self) -> None:
        question = self.question = self.leasing.ask(self.now, self)
        if question is None:
            assert self.is_draining or not self.counted
            return
        for site in SITES:
            said = question.holdings.get(site, Holding(0, 0))
            assert said == Holding(self.in_flight(site), self.unsent(site))
            assert site in question.holdings or not self.counted[site]

    @precondition(lambda self: self.question is not None)
    @rule(told=TOLD, given=GIVEN)
    def answer(self, told: dict[str, int], given: dict[str, int]) -> None:
        """The frontier has decided at once; what it said arrives only now."""
        assert self.question is not None
        leases: list[Lease] = []
        for site, number in given.items():
            if told.get(site, 1):
                leases += [self._lease(site) for _ in range(number)]
        leases = leases[: self.question.room]
        named = {
            lease.task.site for lease in leases if lease.shared
        } | self.question.holdings.keys()
        shares = {site: told[site] for site in named}
        self._count(shares)
        grant = Grant(CrawlState.RUNNING, leases, shares, decided=self.now)
        self.question = None
        self.leases.update((lease.token, lease) for lease in leases)
        self.waiting.update((lease.token, lease) for lease in leases)
        moves = self.leasing.granted(grant, self.now)
        self._visit([lease for lease, _ in moves.visit])
        self._take_back(moves.give_back)
        for site in SITES:
            assert shares.get(site, 0) or not self.unsent(site)

    @precondition(lambda self: self.question is not None)
    @rule(told=TOLD, has_decided=st.booleans())
    def fail(self, told: dict[str, int], has_decided: bool) -> None:
        """Whether the frontier has decided anything nobody knows here."""
        assert self.question is not None
        if has_decided:
            self._count({site: told[site] for site in self.question.holdings})
        self.question = None
        self.leasing.not_granted()

    @rule(told=TOLD, given=GIVEN)
    def ask_and_get(self, told: dict[str, int], given: dict[str, int]) -> None:
        if self.question is None:
            self.ask()
        if self.question is not None:
            self.answer(told, given)

    # Visits

    @precondition(lambda self: self._to_be_answered)
    @rule(number=NUMBERS)
    def be_answered(self, number: int) -> None:
        lease = self.at_host.pop(self._to_be_answered[number % len(self._to_be_answered)])
        following = self.leasing.answered(lease)
        if following is not None:
            self._visit([following[0]])
        assert self.leasing.answered(lease) is None

    @precondition(lambda self: self.question is not None)
    @rule(told=TOLD, given=GIVEN, numbers=st.lists(NUMBERS, max_size=4))
    def end_visits_meanwhile(
        self, told: dict[str, int], given: dict[str, int], numbers: list[int]
    ) -> None:
        for number in numbers[: len(self.visiting)]:
            self.end_a_visit(number, is_refused=False)
        self.answer(told, given)

    @precondition(lambda self: self.visiting)
    @rule(number=NUMBERS, is_refused=st.booleans())
    def end_a_visit(self, number: int, is_refused: bool) -> None:
        token = list(self.visiting)[number % len(self.visiting)]
        lease = self.visiting.pop(token)
        is_refused = is_refused and lease.shared and token in self.at_host
        if not is_refused:
            self.at_host.pop(token, None)
        self.ended[token] = Verdict.RETRY if is_refused else Verdict.DONE
        pushback = Pushback() if is_refused and len(self.ended) % 2 else None
        outcome = Outcome(
            lease=lease, verdict=self.ended[token], pushback=pushback, fault=is_refused
        )
        following = self.leasing.visit_over(outcome)
        if following is not None:
            self._visit([following[0]])
            assert pushback is None or following[0].task.site != lease.task.site

    # The end of leases

    @precondition(lambda self: self.ended)
    @rule(number=st.integers(1, 30))
    def commit(self, number: int) -> None:
        batch = list(self.ended)[:number]
        ends = [(self.leases[token], self.ended.pop(token)) for token in batch]
        for token in batch:
            self.at_host.pop(token, None)
        outcomes = [Outcome(lease=at, verdict=end, fault=end is Verdict.RETRY) for at, end in ends]
        self._visit([lease for lease, _ in self.leasing.finished(outcomes, self.now)])

    @rule(seconds=st.sampled_from([0.01, 0.01, 0.01, 0.3, 0.3, STUCK_S]))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self._take_back(self.leasing.give_back_stuck(self.now))

    @precondition(lambda self: self.waiting)
    @rule(is_new=st.sampled_from([True, False, None, None, None]))
    def lose_some(self, is_new: bool | None) -> None:
        """Some leases were lost, or the crawl was started over. Often nothing of the kind."""
        if is_new:
            self._take_back(self.leasing.start_over())
            assert not self.leasing.shares.unsent
        elif is_new is False:
            self._take_back(self.leasing.give_back_ready())
            assert not self.waiting

    @precondition(lambda self: len(self.leases) > LATE)
    @rule()
    def drain(self) -> None:
        self.is_draining = True
        self._take_back(self.leasing.drain())

    # What holds

    @invariant()
    def never_more_at_a_host_than_is_counted(self) -> None:
        for site in SITES:
            assert self.in_flight(site) <= self.counted[site]

    @invariant()
    def never_more_visits_than_slots(self) -> None:
        assert self.leasing.in_flight == len(self.visiting) <= self.slots

    @invariant()
    def never_more_held_than_may_be(self) -> None:
        assert self.leasing.held.keys() == {*self.waiting, *self.visiting, *self.ended}
        assert len(self.leasing.held) <= self.slots * HELD_PER_SLOT

    @invariant()
    def unsent_ones_are_counted(self) -> None:
        assert self.leasing.shares.unsent == sum(map(self.unsent, SITES))
        assert self.leasing.is_short == (not self.waiting)

    @invariant()
    def nobody_waits_for_nothing(self) -> None:
        if len(self.visiting) < self.slots and self.question is None and not self.ended:
            assert self.leasing.wait_s(self.now, self) is not None

    def teardown(self) -> None:
        """Told to stop, it ends all it holds, and leaves all it has."""
        if not hasattr(self, "leasing"):
            return
        self.drain()
        if self.question is not None:
            self.answer(dict.fromkeys(SITES, 1), dict.fromkeys(SITES, 1))
        assert not self.waiting
        while self.visiting:
            self.end_a_visit(0, is_refused=False)
        if self.ended:
            self.commit(len(self.ended))
        assert self.leasing.held == {}
        left = self.leasing.shares.leave()
        assert left.keys() >= {site for site in SITES if self.counted[site]}
        assert set(left.values()) <= {Holding(0, 0)}
        assert not self.leasing.shares.leave()

    @property
    def _to_be_answered(self) -> list[str]:
        return [token for token, at in self.at_host.items() if at.shared and token in self.visiting]

    def _lease(self, site: str) -> Lease:
        token = f"{next(self._names)}"
        task = Task(url=f"http://{site}/{token}", site=site)
        return Lease(token.encode(), token, task, shared=site in SITES)

    def _count(self, shares: dict[str, int]) -> None:
        assert self.question is not None
        for site, told in shares.items():
            said = self.question.holdings.get(site, Holding(0, 0))
            self.counted[site] = max(told, said.in_flight)
        self.counted = +self.counted

    def _visit(self, leases: Sequence[Lease]) -> None:
        for lease in leases:  # A KeyError: it was visited or given back before.
            self.visiting[lease.token] = self.at_host[lease.token] = self.waiting.pop(lease.token)

    def _take_back(self, leases: Sequence[Lease]) -> None:
        for lease in leases:
            del self.waiting[lease.token]
            self.ended[lease.token] = Verdict.RETURNED


TestSharesLives = lives(SharesMachine, 400, steps=80)
