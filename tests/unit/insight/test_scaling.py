"""How many workers there should be: up at once, down slowly."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import ConfigError
from shoal.insight.advise.demand import Demand
from shoal.insight.advise.scaling import (
    DOWN_AFTER_S,
    DOWN_EVERY_S,
    STEP_S,
    STORM_S,
    ZERO_AFTER_S,
    Bounds,
    Hindrance,
    Staff,
    Staffing,
    scaled,
)

IDLE = Demand(workers=0, why="nothing is to be done", is_idle=True)


def wants(workers: int, **said: Any) -> Demand:
    return Demand(workers=workers, why=f"{workers} workers would do", **said)


class Watched:
    """A fleet that does at once what is decided."""

    def __init__(self, workers: int = 0, **bounds: Any) -> None:
        self.now = 1_000.0
        self.bounds = Bounds(**bounds)
        self.staffing: Staffing | None = None
        self.alive = workers

    def look(self, demand: Demand, after_s: float = 1.0, spread: float = 0.0, **staff: Any) -> int:
        self.now += after_s
        told = Staff(alive=self.alive, **staff)
        before = self.staffing
        self.staffing = scaled(before, demand, told, self.bounds, self.now, spread=spread)
        self.alive = self.staffing.workers
        return self.alive

    def until(self, demand: Demand, workers: int) -> float:
        """How long it takes until there are so many."""
        began = self.now
        while self.look(demand) != workers:
            assert self.now - began < 10_000, self.staffing
        return self.now - began

    @property
    def known(self) -> Staffing:
        assert self.staffing is not None
        return self.staffing


def test_a_fleet_doubles_every_15_seconds_until_there_are_enough() -> None:
    fleet = Watched(max=20)
    assert [fleet.look(wants(12), STEP_S) for _ in range(6)] == [1, 2, 4, 8, 12, 12]


def test_and_not_before() -> None:
    fleet = Watched(max=20)
    assert fleet.look(wants(12)) == 1
    assert fleet.until(wants(12), 2) == STEP_S


def test_what_was_wanted_has_to_be_there_before_more_is() -> None:
    fleet = Watched(max=20)
    for _ in range(10):
        fleet.alive = min(fleet.alive, 2)
        fleet.look(wants(12), STEP_S)
    assert fleet.alive == 4


def test_down_after_two_minutes_and_one_by_one() -> None:
    fleet = Watched(6)
    assert fleet.until(wants(3), 5) == DOWN_AFTER_S + 1
    assert fleet.until(wants(3), 4) == DOWN_EVERY_S
    assert fleet.until(wants(3), 3) == DOWN_EVERY_S
    assert [fleet.look(wants(3), 1000) for _ in range(3)] == [3, 3, 3]


def test_a_moment_in_which_all_are_wanted_has_the_two_minutes_begin_anew() -> None:
    fleet = Watched(6)
    for _ in range(5):
        fleet.look(wants(3), DOWN_AFTER_S * 0.8)
        fleet.look(wants(6), 1.0)
    assert fleet.alive == 6


def test_zero_only_after_five_minutes_without_work() -> None:
    fleet = Watched(1)
    assert fleet.until(IDLE, 0) == ZERO_AFTER_S + 1
    assert fleet.look(wants(4)) == 1, "up at once"


def test_where_others_do_the_work_nobody_is_kept_for_five_minutes() -> None:
    fleet = Watched(1)
    for _ in range(int(DOWN_AFTER_S) + 2):
        fleet.look(wants(3), others=5)
    assert fleet.alive == 0


def test_never_fewer_than_the_minimum_nor_more_than_the_maximum() -> None:
    fleet = Watched(min=2, max=4)
    assert fleet.look(IDLE) == 2
    assert [fleet.look(wants(50), STEP_S) for _ in range(3)] == [4, 4, 4]
    assert fleet.known.hindrance is Hindrance.MAXIMUM
    assert fleet.known.why == "50 workers would do; the maximum is 4"
    fleet.until(IDLE, 2)
    assert [fleet.look(IDLE, 100) for _ in range(9)] == [2] * 9
    assert fleet.known.why == "nothing is to be done; the minimum is 2"


def test_what_may_be_spent_in_an_hour_is_a_maximum() -> None:
    fleet = Watched(max=20, worker_per_h=0.1, max_cost_per_h=0.3)
    assert [fleet.look(wants(9), STEP_S) for _ in range(4)] == [1, 2, 3, 3]
    assert fleet.known.why == "9 workers would do; the maximum cost is 3"


def test_no_more_while_a_store_is_the_limit() -> None:
    fleet = Watched(3)
    assert [fleet.look(wants(9, is_capped=True), 60) for _ in range(4)] == [3] * 4
    assert fleet.known.hindrance is Hindrance.STORES


def test_no_more_while_workers_die_but_those_that_there_have_to_be() -> None:
    fleet = Watched()
    died_at = fleet.now
    assert fleet.look(wants(9), died_at=died_at) == 1
    assert fleet.look(wants(9), STEP_S, died_at=died_at) == 1
    assert fleet.known.hindrance is Hindrance.DEATHS
    assert fleet.look(wants(9), STORM_S, died_at=died_at) == 2


def test_workers_of_others_are_a_part_of_what_is_wanted() -> None:
    fleet = Watched(2)
    assert fleet.look(wants(10), others=6) == 3, "half of the gap: others may fill it as well"
    assert fleet.look(wants(10), STEP_S, others=6) == 4
    assert [fleet.look(wants(10), STEP_S, others=6) for _ in range(3)] == [4] * 3
    assert fleet.known.why == "10 workers would do; 6 of them elsewhere"
    fleet.look(IDLE, others=6)
    assert fleet.known.why == "nothing is to be done"


@pytest.mark.parametrize(("wanted", "alike"), [(10, 0.0), (10, 0.9), (3, 0.5), (1, 0.1)])
def test_two_machines_find_what_is_wanted_together(wanted: int, alike: float) -> None:
    """They look at the same moments, and do the same at first."""
    one, two = Watched(6), Watched(6)
    for _ in range(1_000):
        before = one.alive, two.alive
        one.look(wants(wanted), spread=0.0, others=before[1])
        two.look(wants(wanted), spread=alike, others=before[0])
    assert one.alive + two.alive == wanted if alike else abs(one.alive + two.alive - wanted) <= 1


def test_one_that_takes_over_begins_with_those_that_there_are() -> None:
    fleet = Watched(7)
    fleet.look(wants(2))
    assert fleet.alive == 7


def test_who_did_not_look_for_long_waits_again() -> None:
    fleet = Watched(7)
    fleet.look(wants(2))
    fleet.look(wants(2), 3600.0)
    assert fleet.alive == 7
    assert fleet.until(wants(2), 6) == DOWN_AFTER_S


@given(
    st.integers(0, 5),
    st.integers(5, 30),
    st.lists(st.tuples(st.integers(0, 40), st.floats(0.1, 200)), max_size=60),
)
def test_whatever_is_wanted_and_whenever(
    least: int, most: int, looks: list[tuple[int, float]]
) -> None:
    fleet = Watched(min=least, max=most)
    for wanted, after_s in looks:
        before = fleet.alive
        now = fleet.look(wants(wanted) if wanted else IDLE, after_s)
        assert least <= now <= most
        assert now >= before - 1
        assert now <= max(2 * before, least, 1)
        assert now <= max(before, wanted, least)


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ({"min": 3, "max": 2}, "--min 3 --max 2"),
        ({"min": -1}, "--min -1"),
        ({"max": 0}, "--min 0 --max 0"),
        ({"max": 10**9}, "--max 1 to 1,000"),
        ({"worker_per_h": 1.0, "max_cost_per_h": 0.5}, "1 worker at 1 an hour would cost more"),
        ({"min": 5, "worker_per_h": 1.0, "max_cost_per_h": 4}, "5 workers at 1 an hour"),
    ],
)
def test_bounds_that_make_no_sense_are_refused(bounds: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Bounds(**bounds)
