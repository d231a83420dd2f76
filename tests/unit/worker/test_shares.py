"""What a worker does with its shares of hosts. No loop, no clock: time is what a test says."""

from __future__ import annotations

from itertools import count

import pytest

from shoal.core.sharing import AHEAD_PER_SHARE
from shoal.core.task import Task
from shoal.frontier.values import CrawlState, Grant, Holding, Lease, Outcome, Pushback, Verdict
from shoal.worker.leasing import AHEAD_S, POLL_S, SEND_PART, STUCK_S, Leasing, Question

SLOTS = 8
LEASE_S = 30.0
SITE, OTHER = "shop.example", "other.example"


class Bench:
    """A worker's leases, and a frontier that tells it what a test says. Nothing is to be stored."""

    held_bytes = 0
    busy_since: float | None = None
    is_saving: bool = False
    is_empty = True

    def __init__(self) -> None:
        self.leasing = Leasing(SLOTS)
        self.now = 1_000.0
        self.visiting: list[Lease] = []
        self.given_back: list[Lease] = []
        self._names = count(1)
        self.leasing.begin(self.now, LEASE_S)

    def leases(self, number: int, site: str = SITE, *, shared: bool = True) -> list[Lease]:
        names = [f"{next(self._names)}" for _ in range(number)]
        task = Task(url=f"http://{site}/", site=site)
        return [Lease(name.encode(), name, task, shared=shared) for name in names]

    def ask(self) -> Question:
        question = self.leasing.ask(self.now, self)
        assert question is not None
        return question

    def grant(self, leases: list[Lease], **shares: int) -> None:
        """Answer a question; `shop=2` is the share of shop.example."""
        told = {f"{name}.example": share for name, share in shares.items()}
        grant = Grant(CrawlState.RUNNING, leases, told, decided=self.now)
        moves = self.leasing.granted(grant, self.now)
        self.visiting += [lease for lease, _ in moves.visit]
        self.given_back += moves.give_back

    def be_answered(self, lease: Lease) -> None:
        if (following := self.leasing.answered(lease)) is not None:
            self.visiting.append(following[0])

    def end(
        self, lease: Lease, pushback: Pushback | None = None, *, fault: bool = False
    ) -> Outcome:
        self.visiting.remove(lease)
        outcome = Outcome(lease=lease, verdict=Verdict.DONE, pushback=pushback, fault=fault)
        if (following := self.leasing.visit_over(outcome)) is not None:
            self.visiting.append(following[0])
        return outcome


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def sharing(bench: Bench) -> Bench:
    """Two of its host's requests may be in flight, and are; four wait."""
    bench.ask()
    bench.grant(bench.leases(6), shop=2)
    assert (len(bench.visiting), bench.leasing.shares.unsent) == (2, 4)
    return bench


def test_what_is_answered_makes_way_for_the_next(sharing: Bench) -> None:
    first = sharing.visiting[0]
    sharing.be_answered(first)
    assert len(sharing.visiting) == 3
    sharing.end(first)  # Its slot is free now, and not its host's room.
    assert len(sharing.visiting) == 2


def test_a_visit_that_says_nothing_is_answered_when_it_is_over(sharing: Bench) -> None:
    sharing.end(sharing.visiting[0])
    assert len(sharing.visiting) == 2


def test_a_question_says_what_there_is(sharing: Bench) -> None:
    assert sharing.ask().holdings == {SITE: Holding(2, 4)}


def test_while_a_question_is_open_no_more_is_sent_than_it_said(bench: Bench) -> None:
    """The frontier may have given the rest to others by now."""
    bench.ask()
    elsewhere = bench.leases(6, "plain.example", shared=False)
    bench.grant([*elsewhere, *bench.leases(6)], shop=4)
    assert bench.ask().holdings == {SITE: Holding(2, 4)}
    for lease in elsewhere:
        bench.end(lease)
    assert [lease.task.site for lease in bench.visiting] == [SITE] * 2
    bench.leasing.not_granted()
    bench.be_answered(bench.visiting[0])
    assert bench.ask().holdings == {SITE: Holding(2, 3)}
    bench.grant([], shop=4)
    assert bench.ask().holdings == {SITE: Holding(4, 1)}


def test_a_share_that_is_lowered_lets_those_in_flight_end(sharing: Bench) -> None:
    sharing.ask()
    sharing.grant([], shop=1)
    sharing.end(sharing.visiting[0])
    assert len(sharing.visiting) == 1
    sharing.end(sharing.visiting[0])
    assert len(sharing.visiting) == 1


def test_without_a_share_what_was_not_sent_is_given_back(sharing: Bench) -> None:
    sharing.ask()
    sharing.grant([], shop=0)
    assert (len(sharing.given_back), sharing.leasing.shares.unsent) == (4, 0)
    assert len(sharing.visiting) == 2


def test_a_frontier_that_does_not_name_a_host_has_no_share_of_it_for_us(sharing: Bench) -> None:
    sharing.ask()
    sharing.grant([])
    assert len(sharing.given_back) == 4


def test_a_host_is_forgotten_when_the_frontier_has_heard_that_nothing_is_there(
    sharing: Bench,
) -> None:
    sharing.ask()
    sharing.grant([], shop=0)
    for lease in [*sharing.visiting]:
        sharing.end(lease)
    assert sharing.ask().holdings == {SITE: Holding(0, 0)}
    sharing.grant([], shop=0)
    assert sharing.ask().holdings == {}


def test_a_host_that_asks_for_less_gets_nothing_until_the_frontier_says_so(sharing: Bench) -> None:
    refusal = sharing.end(sharing.visiting[0], Pushback())
    sharing.end(sharing.visiting[0])
    assert sharing.visiting == []
    assert sharing.leasing.finished([refusal], sharing.now) == []
    assert sharing.ask().holdings == {SITE: Holding(0, 4)}
    sharing.grant([], shop=2)
    assert len(sharing.visiting) == 2


def test_an_answer_to_what_was_asked_before_does_not_say_so(sharing: Bench) -> None:
    first, second = sharing.visiting
    sharing.ask()
    refusal = sharing.end(first, Pushback(), fault=True)
    sharing.grant([], shop=2)
    sharing.end(second)
    assert not sharing.visiting
    assert not sharing.given_back

    sharing.ask()
    sharing.leasing.finished([refusal], sharing.now)
    assert not sharing.visiting
    sharing.grant([], shop=2)
    assert len(sharing.visiting) == 2


def test_a_single_503_is_no_word_of_the_host(sharing: Bench) -> None:
    sharing.end(sharing.visiting[0], Pushback(meant=False))
    assert len(sharing.visiting) == 2


def test_a_failure_makes_no_way_for_the_next_before_the_frontier_has_heard_of_it(
    sharing: Bench,
) -> None:
    failed = sharing.end(sharing.visiting[0], fault=True)
    assert len(sharing.visiting) == 1
    assert sharing.ask().holdings == {SITE: Holding(2, 4)}
    sharing.grant([], shop=2)
    assert len(sharing.visiting) == 1
    assert len(sharing.leasing.finished([failed], sharing.now)) == 1


def test_hosts_have_their_turns(bench: Bench) -> None:
    bench.ask()
    bench.grant([*bench.leases(20), *bench.leases(20, OTHER)], shop=SLOTS, other=SLOTS)
    assert [lease.task.site for lease in bench.visiting] == [SITE, OTHER] * (SLOTS // 2)


def test_what_has_its_permission_now_goes_first(bench: Bench) -> None:
    bench.ask()
    plain = bench.leases(SLOTS, OTHER, shared=False)
    bench.grant([*bench.leases(SLOTS), *plain], shop=SLOTS)
    assert bench.visiting == plain


def test_requests_are_sent_only_while_the_share_surely_lasts(sharing: Bench) -> None:
    """What follows on an answer that comes late, because we stood still or the frontier is away,
    has to be asked for again."""
    asked_at = sharing.now
    sharing.now += LEASE_S
    following = sharing.leasing.answered(sharing.visiting[0])
    assert following is not None
    assert following[1] == asked_at + LEASE_S * SEND_PART < sharing.now


def test_each_answer_prolongs_the_time_to_send(sharing: Bench) -> None:
    sharing.ask()
    sharing.now += LEASE_S
    grant = Grant(CrawlState.RUNNING, shares={SITE: 3}, decided=sharing.now)
    (_, send_by), *_ = sharing.leasing.granted(grant, sharing.now).visit
    assert send_by == sharing.now + LEASE_S * SEND_PART


# How many


def test_a_host_that_all_workers_want_is_not_hoarded(sharing: Bench) -> None:
    """Six slots are idle: that is no reason to take what others could do."""
    assert sharing.ask().room == 0


def test_leases_are_taken_ahead_for_what_is_visited_meanwhile(sharing: Bench) -> None:
    ended = [sharing.end(sharing.visiting[0]) for _ in range(6)]
    sharing.now += AHEAD_S / 2
    sharing.leasing.finished(ended, sharing.now)
    assert sharing.ask().room == 2 + 2 * 6 + 1


def test_no_more_is_asked_for_than_the_host_would_give(bench: Bench) -> None:
    """A worker whose pages are quick, and that has all the tasks ahead that it may have."""
    bench.ask()
    bench.grant(bench.leases(6), shop=2)
    ended = [bench.end(bench.visiting[0]) for _ in range(6)]
    bench.now += AHEAD_S / 8
    bench.leasing.finished(ended, bench.now)
    assert bench.ask().room == 2 * AHEAD_PER_SHARE
    bench.grant(bench.leases(2 * AHEAD_PER_SHARE + 2), shop=2)
    assert bench.leasing.wait_s(bench.now, bench) == pytest.approx(POLL_S), "a look, nothing else"
    assert bench.ask() == Question(0, {SITE: Holding(2, 2 * AHEAD_PER_SHARE)})
    bench.grant([], shop=4)
    assert bench.ask().room > 0, "others have made room"


def test_where_there_are_other_hosts_idle_slots_are_for_them(sharing: Bench) -> None:
    sharing.now += POLL_S
    assert sharing.ask().room == 1  # A look whether there are any.
    sharing.grant(sharing.leases(1, OTHER, shared=False), shop=2)
    assert sharing.ask().room == SLOTS - 3


def test_it_looks_for_other_hosts_from_time_to_time(sharing: Bench) -> None:
    assert sharing.leasing.wait_s(sharing.now, sharing) == pytest.approx(POLL_S)


def test_a_worker_that_can_take_nothing_still_says_what_it_has(sharing: Bench) -> None:
    sharing.held_bytes = 1 << 40
    assert sharing.ask() == Question(0, {SITE: Holding(2, 4)})


# The end


def test_nor_does_it_wait_for_a_slot_to_say_so(bench: Bench) -> None:
    bench.ask()
    bench.grant(bench.leases(SLOTS * 2), shop=SLOTS)
    for lease in [*bench.visiting]:
        bench.be_answered(lease)
    assert bench.leasing.in_flight == SLOTS
    assert bench.leasing.wait_s(bench.now, bench) == POLL_S
    bench.now += POLL_S
    assert bench.ask() == Question(0, {SITE: Holding(0, SLOTS)})


def test_what_waits_long_is_for_others(sharing: Bench) -> None:
    sharing.now += STUCK_S
    assert len(sharing.leasing.give_back_stuck(sharing.now)) == 4
    assert sharing.leasing.shares.unsent == 0


def test_told_to_stop_it_gives_back_what_was_not_sent_and_then_its_shares(sharing: Bench) -> None:
    assert len(sharing.leasing.drain()) == 4
    for lease in [*sharing.visiting]:
        sharing.end(lease)
    assert sharing.leasing.shares.leave() == {SITE: Holding(0, 0)}
    assert sharing.leasing.shares.leave() == {}


def test_a_crawl_that_is_started_over_has_no_use_for_old_leases(sharing: Bench) -> None:
    assert len(sharing.leasing.start_over()) == 4
    assert sharing.ask().holdings == {SITE: Holding(2, 0)}
