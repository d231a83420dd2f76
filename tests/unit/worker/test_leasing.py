"""What a worker asks for, visits and gives back. No loop, no clock: time is what a test says."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from math import inf
from typing import Any

import msgspec
import pytest

from shoal.core.exits import Lent
from shoal.core.identities import LeasedIdentity
from shoal.core.policy import SEND_SLACK_S
from shoal.core.task import Task
from shoal.frontier.values import CrawlState, Grant, Lease, Outcome, Verdict
from shoal.worker.leasing import (
    AHEAD_PER_SLOT,
    AHEAD_S,
    ASK_EVERY_S,
    HELD_PER_SLOT,
    IDLE_S,
    MAX_HELD_BYTES,
    POLL_S,
    SOON_S,
    STUCK_S,
    Leasing,
)

SLOTS = 4
LEASE_S = 30.0
TASK = Task(url="http://shop.example/", site="shop.example")
MOST_AHEAD = SLOTS * AHEAD_PER_SLOT


class Waiting(msgspec.Struct):
    """What waits for the stores."""

    held_bytes: int = 0
    busy_since: float | None = None
    is_saving: bool = False
    is_empty: bool = True


NOTHING = Waiting()


class Bench:
    """A worker's leases, and a frontier that grants what a test says."""

    def __init__(self, slots: int = SLOTS) -> None:
        self.leasing = Leasing(slots)
        self.now = 1_000.0
        self.visiting: list[str] = []
        """What is in flight: the oldest first."""
        self.visited: list[Lease] = []
        """What is to be finished."""
        self.given_back: list[str] = []
        self._names = count(1)
        self.leasing.begin(self.now, LEASE_S)

    def leases(self, number: int, **what: Any) -> list[Lease]:
        names = [f"{next(self._names)}" for _ in range(number)]
        return [Lease(name.encode(), name, TASK, **what) for name in names]

    def grant(self, leases: Sequence[Lease], wait_s: float | None = None) -> None:
        """Answer a question."""
        grant = Grant(CrawlState.RUNNING, list(leases), wait_s=wait_s, decided=self.now)
        moves = self.leasing.granted(grant, self.now)
        self.visiting += [lease.token for lease, _ in moves.visit]
        self.take_back(moves.give_back)

    def ask_and_grant(self, number: int | None = None, **what: bool) -> None:
        """Ask, and be granted so much, or all that was asked for."""
        asked = self.ask()
        assert asked
        self.grant(self.leases(asked if number is None else number, **what))

    def take_back(self, leases: Sequence[Lease]) -> None:
        self.given_back += [lease.token for lease in leases]
        self.visited += leases

    def end_visits(self, number: int) -> None:
        for _ in range(number):
            lease = self.leasing.held[self.visiting.pop(0)]
            self.visited.append(lease)
            outcome = Outcome(lease=lease, verdict=Verdict.DONE)
            if (following := self.leasing.visit_over(outcome)) is not None:
                self.visiting.append(following[0].token)

    def finish(self) -> None:
        """Commit all that was visited or given back."""
        ends = [
            Verdict.RETURNED if v.token in self.given_back else Verdict.DONE for v in self.visited
        ]
        pairs = zip(self.visited, ends, strict=True)
        self.leasing.finished([Outcome(lease=v, verdict=end) for v, end in pairs], self.now)
        self.visited = []

    def ask(self, backlog: Waiting = NOTHING) -> int:
        question = self.leasing.ask(self.now, backlog)
        return question.room if question is not None else 0

    def wait_s(self, backlog: Waiting = NOTHING) -> float | None:
        return self.leasing.wait_s(self.now, backlog)

    @property
    def is_time_to_ask(self) -> bool:
        wait_s = self.wait_s()
        return wait_s is not None and wait_s <= 0

    @property
    def waiting(self) -> list[str]:
        return [lease.token for lease, _ in self.leasing.ready]


@pytest.fixture
def bench() -> Bench:
    return Bench()


# When, and for how many


def test_a_new_worker_asks_at_once_for_all_its_slots(bench: Bench) -> None:
    assert bench.is_time_to_ask
    assert bench.ask() == SLOTS


def test_with_all_slots_taken_it_waits_until_something_happens(bench: Bench) -> None:
    bench.ask_and_grant()
    assert len(bench.visiting) == SLOTS
    assert bench.wait_s() is None
    assert bench.ask() == 0


def test_a_free_slot_is_asked_for(bench: Bench) -> None:
    bench.ask_and_grant()
    bench.end_visits(1)
    bench.now += ASK_EVERY_S
    assert bench.wait_s() == pytest.approx(0.0)
    assert bench.ask() == 1


@pytest.mark.parametrize(
    ("granted", "wait_s", "expected_s"),
    [
        pytest.param(1, None, POLL_S, id="only new work can change anything"),
        pytest.param(1, 0.1, 0.1, id="a host may be hit again"),
        pytest.param(1, 60.0, POLL_S, id="others may bring work meanwhile"),
        pytest.param(1, 0.0, ASK_EVERY_S, id="a question has its price"),
        pytest.param(0, None, POLL_S, id="there was nothing"),
    ],
)
def test_how_long_to_wait_when_there_was_too_little(
    bench: Bench, granted: int, wait_s: float | None, expected_s: float
) -> None:
    bench.ask()
    bench.grant(bench.leases(granted), wait_s)
    assert bench.wait_s() == pytest.approx(expected_s)


def test_where_there_was_plenty_it_asks_again_soon(bench: Bench) -> None:
    bench.ask()
    bench.grant(bench.leases(SLOTS), 60.0)
    bench.end_visits(1)
    assert bench.wait_s() == pytest.approx(ASK_EVERY_S)


def test_what_was_finished_apart_makes_room_at_once(bench: Bench) -> None:
    bench.ask_and_grant(1)
    assert bench.wait_s() == pytest.approx(POLL_S)
    bench.leasing.finished_apart()
    assert bench.is_time_to_ask


@pytest.mark.parametrize(
    ("in_flight", "backlog", "expected_s"),
    [
        pytest.param(1, Waiting(), 0.0, id="nothing is to be committed"),
        pytest.param(1, Waiting(is_empty=False), SOON_S, id="a batch grows"),
        pytest.param(2, Waiting(busy_since=0.0), SOON_S, id="a batch is being saved"),
        pytest.param(2, Waiting(busy_since=-SOON_S), 0.0, id="for long"),
        pytest.param(1, Waiting(busy_since=0.0), IDLE_S, id="most slots are idle"),
        pytest.param(1, Waiting(busy_since=-IDLE_S), 0.0, id="and were for a moment"),
    ],
)
def test_leases_come_along_with_a_commit(
    bench: Bench, in_flight: int, backlog: Waiting, expected_s: float
) -> None:
    """`busy_since` is counted from now here."""
    bench.ask_and_grant(in_flight)
    bench.now += POLL_S
    if backlog.busy_since is not None:
        backlog = msgspec.structs.replace(backlog, busy_since=backlog.busy_since + bench.now)
    assert bench.wait_s(backlog) == pytest.approx(expected_s, abs=1e-6)


def test_only_one_question_is_open(bench: Bench) -> None:
    assert bench.ask() == SLOTS
    assert bench.ask() == 0
    assert bench.wait_s() == SOON_S
    bench.leasing.not_granted()
    assert bench.ask() == SLOTS


def test_nothing_is_asked_while_much_waits_for_the_stores(bench: Bench) -> None:
    full = Waiting(held_bytes=MAX_HELD_BYTES + 1)
    assert (bench.wait_s(full), bench.ask(full)) == (None, 0)
    assert bench.ask(Waiting(held_bytes=MAX_HELD_BYTES)) == SLOTS


def test_stores_that_are_slow_bound_what_is_held(bench: Bench) -> None:
    for _ in range(HELD_PER_SLOT):
        bench.ask_and_grant()
        bench.end_visits(SLOTS)
    assert len(bench.leasing.held) == SLOTS * HELD_PER_SLOT
    assert bench.wait_s() is None
    bench.finish()
    assert bench.ask() >= SLOTS


def test_a_task_that_must_be_alone_is_alone(bench: Bench) -> None:
    bench.ask_and_grant(1, alone=True)
    bench.leasing.finished_apart()
    assert (bench.wait_s(), bench.ask()) == (None, 0)
    bench.end_visits(1)
    assert (bench.wait_s(), bench.ask()) == (None, 0)  # It is not finished.
    bench.finish()
    assert bench.ask() == SLOTS


@pytest.mark.parametrize(("paced", "send_in_s"), [(True, SEND_SLACK_S), (False, inf)])
def test_a_rate_makes_the_time_to_send_short(bench: Bench, paced: bool, send_in_s: float) -> None:
    bench.ask()
    grant = Grant(CrawlState.RUNNING, bench.leases(1, paced=paced), decided=bench.now)
    ((_, send_by),) = bench.leasing.granted(grant, bench.now + 1).visit
    assert send_by == bench.now + send_in_s


@pytest.mark.parametrize("state", [CrawlState.FINISHED, CrawlState.CANCELLED])
def test_a_crawl_that_is_over_is_asked_for_no_more(bench: Bench, state: CrawlState) -> None:
    bench.ask()
    bench.leasing.granted(Grant(state), bench.now)
    assert bench.leasing.is_over
    assert bench.ask() == 0
    bench.leasing.begin(bench.now, LEASE_S)  # Somebody has started it again.
    assert bench.ask() == SLOTS


def test_a_crawl_that_is_gone_is_over(bench: Bench) -> None:
    bench.ask()
    bench.leasing.crawl_gone()
    assert bench.leasing.is_over
    assert bench.ask() == 0


# Ahead of the visits


@pytest.mark.parametrize(
    ("seconds", "what", "ahead"),
    [
        pytest.param(ASK_EVERY_S, {}, MOST_AHEAD, id="quick"),
        pytest.param(AHEAD_S * 0.9, {}, SLOTS, id="as much as is visited meanwhile"),
        pytest.param(AHEAD_S * SLOTS * 2, {}, 0, id="slow: others may have nothing to do"),
        pytest.param(ASK_EVERY_S, {"paced": True}, 0, id="the permission to send would lapse"),
        pytest.param(ASK_EVERY_S, {"crowded": True}, 0, id="others wait for this host"),
    ],
)
def test_how_many_are_taken_ahead(seconds: float, what: dict[str, bool], ahead: int) -> None:
    bench = Bench()
    bench.ask_and_grant(**what)
    bench.end_visits(SLOTS)
    bench.now += seconds
    bench.finish()
    assert bench.ask() == SLOTS + ahead


def test_few_pages_at_once_are_no_reason_to_take_any_ahead(bench: Bench) -> None:
    bench.ask_and_grant()
    bench.end_visits(SLOTS - 1)
    bench.now += ASK_EVERY_S
    bench.finish()
    assert bench.ask() == SLOTS - 1


def test_each_batch_is_measured_by_itself(bench: Bench) -> None:
    bench.ask_and_grant()
    bench.end_visits(SLOTS)
    bench.now += 60.0
    bench.finish()
    bench.ask_and_grant()
    bench.end_visits(SLOTS)
    bench.now += ASK_EVERY_S
    bench.finish()
    assert bench.ask() == SLOTS + MOST_AHEAD


@pytest.fixture
def ahead(bench: Bench) -> Bench:
    """All slots are taken, and as much waits for them as may."""
    bench.ask_and_grant()
    bench.end_visits(SLOTS)
    bench.now += ASK_EVERY_S
    bench.finish()
    bench.ask_and_grant()
    assert (len(bench.visiting), len(bench.waiting)) == (SLOTS, MOST_AHEAD)
    return bench


def test_what_waits_gets_the_slots_that_are_free(ahead: Bench) -> None:
    following = ahead.waiting[:2]
    ahead.end_visits(2)
    assert ahead.visiting[-2:] == following
    assert len(ahead.visiting) == SLOTS
    assert ahead.wait_s() == SOON_S  # Rather with a commit than by itself.


def test_what_waits_is_given_back_in_the_end(ahead: Bench) -> None:
    waiting, visiting = ahead.waiting, list(ahead.visiting)
    ahead.take_back(ahead.leasing.drain())
    assert ahead.given_back == waiting
    assert ahead.visiting == visiting
    ahead.end_visits(SLOTS)
    assert ahead.visiting == []
    ahead.finish()
    assert ahead.leasing.held == {}
    assert ahead.ask() == 0


def test_what_is_granted_after_the_word_to_stop_is_given_back(bench: Bench) -> None:
    bench.ask()
    bench.leasing.drain()
    late = bench.leases(SLOTS)
    bench.grant(late)
    assert bench.visiting == []
    assert bench.given_back == [lease.token for lease in late]


def test_what_waits_long_is_for_others(ahead: Bench) -> None:
    waiting = ahead.waiting
    ahead.now += STUCK_S - 1
    assert ahead.leasing.give_back_stuck(ahead.now) == []
    ahead.now += 1
    ahead.take_back(ahead.leasing.give_back_stuck(ahead.now))
    assert ahead.given_back == waiting
    assert ahead.wait_s() is None  # And nothing new instead of it.


def test_what_came_later_may_wait_longer(ahead: Bench) -> None:
    old = ahead.waiting
    ahead.end_visits(SLOTS)
    ahead.now += 1.0
    assert ahead.ask() == SLOTS
    ahead.grant(ahead.leases(SLOTS))
    ahead.now += STUCK_S - 1.0
    ahead.take_back(ahead.leasing.give_back_stuck(ahead.now))
    assert ahead.given_back == old[SLOTS:]
    assert len(ahead.waiting) == SLOTS


def test_when_some_are_lost_all_that_wait_are_given_back(ahead: Bench) -> None:
    waiting = ahead.waiting
    ahead.take_back(ahead.leasing.give_back_ready())
    assert ahead.given_back == waiting
    assert ahead.wait_s() is None


def test_what_was_given_back_counts_for_nothing(ahead: Bench) -> None:
    """Else a site that has come to a stand would look quick."""
    ahead.take_back(ahead.leasing.give_back_ready())
    ahead.now += ASK_EVERY_S
    ahead.finish()
    assert ahead.wait_s() is None


def test_as_many_tasks_by_exits_are_asked_for_as_can_leave_at_once() -> None:
    bench = Bench()
    question = bench.leasing.ask(bench.now, NOTHING)
    assert question is not None
    assert question.slots == SLOTS
    bench.grant(bench.leases(1))
    bench.now += ASK_EVERY_S
    question = bench.leasing.ask(bench.now, NOTHING)
    assert question is not None
    assert question.slots == SLOTS - 1


@pytest.mark.parametrize(
    "lent", [{"lent": Lent("dc-1", pool="dc")}, {"identity": LeasedIdentity("shop#alice")}]
)
def test_a_request_with_what_is_lent_leaves_now_or_not_at_all(lent: dict[str, Any]) -> None:
    bench = Bench()
    bench.leasing.ask(bench.now, NOTHING)
    (lease,) = bench.leases(1, **lent)
    grant = Grant(CrawlState.RUNNING, [lease], decided=bench.now)
    assert bench.leasing.granted(grant, bench.now).visit == [(lease, bench.now + SEND_SLACK_S)]
    assert not lease.paced
