"""The life of an alert: when it fires, who is told, when it is told again, when it is over."""

from __future__ import annotations

from shoal.alerts.conditions import Finding
from shoal.alerts.limits import Limits
from shoal.alerts.states import OWED_FOR_S, QUIET_S, AlertState, Found, Plan, advance, delivered
from support.samples import BEGIN, sample

PLAN = Plan(["ops", "mail"], 4 * 3600.0)
FINDING = Finding(0.3, 0.2, "30 % failed")
WRONG = Found("failures", FINDING, Limits(), sample())
LASTING = Found("no_workers", FINDING, Limits(no_workers="5m"), sample())
PASSED = Found("fewer_items", FINDING, Limits(), sample())


class Life:
    """An alert as look after look leaves it. What is owed is delivered, unless told otherwise."""

    def __init__(self) -> None:
        self.states: dict[str, AlertState] = {}
        self.told: list[tuple[float, str]] = []

    def look(
        self,
        minute: float,
        *found: Found,
        deliver: bool = True,
        watched: tuple[str, ...] = ("shop",),
    ) -> str | None:
        now = BEGIN + 60 * minute
        self.states = advance(self.states, found, PLAN, now, watched=watched)
        for key, state in self.states.items():
            if state.owed and deliver:
                self.told.append((minute, state.state))
                self.states[key] = delivered(state, lambda route: True)
        return next((state.state for state in self.states.values()), None)


def test_it_is_told_once_when_it_fires_and_once_when_it_is_over() -> None:
    life = Life()
    assert [life.look(minute, WRONG) for minute in range(3)] == ["firing"] * 3
    quiet = QUIET_S / 60
    assert [life.look(minute) for minute in (3, 2 + quiet)] == ["firing", "resolved"]
    assert life.look(8) is None
    assert life.told == [(0, "firing"), (2 + quiet, "resolved")]


def test_what_must_last_is_pending_first() -> None:
    life = Life()
    assert [life.look(minute, LASTING) for minute in (0, 4.9, 5)] == [
        "pending",
        "pending",
        "firing",
    ]
    assert life.told == [(5, "firing")]


def test_what_did_not_last_was_nothing() -> None:
    life = Life()
    assert [life.look(0, LASTING), life.look(1), life.look(2, LASTING)] == [
        "pending",
        None,
        "pending",
    ]
    assert life.look(6, LASTING) == "pending"
    assert life.told == []


def test_what_comes_and_goes_is_not_told_each_time() -> None:
    life = Life()
    for minute in range(60):
        life.look(minute, *([WRONG] if minute % 2 else []))
    assert life.told == [(1, "firing")]


def test_it_is_told_again_after_four_hours() -> None:
    life = Life()
    for minute in range(0, 13 * 60, 10):
        life.look(minute, WRONG)
    assert life.told == [(0, "firing"), (240, "firing"), (480, "firing"), (720, "firing")]


def test_one_that_came_back_is_a_new_one() -> None:
    life = Life()
    for minute, found in ((0, [WRONG]), (6, []), (7, [WRONG])):
        life.look(minute, *found)
    assert life.told == [(0, "firing"), (6, "resolved"), (7, "firing")]
    (state,) = life.states.values()
    assert state.since == state.fired_at == BEGIN + 7 * 60
    assert state.resolved_at is None


def test_nobody_is_told_that_what_has_happened_is_over() -> None:
    life = Life()
    assert [life.look(0, PASSED), life.look(5), life.look(6)] == ["firing", "resolved", None]
    assert life.told == [(0, "firing")]


def test_nobody_is_told_of_a_crawl_that_is_not_watched_any_more() -> None:
    life = Life()
    life.look(0, WRONG)
    assert [life.look(1, watched=()), life.look(2, watched=())] == ["resolved", None]
    assert life.told == [(0, "firing")]


def test_what_was_not_delivered_is_owed_for_an_hour() -> None:
    life = Life()
    life.look(0, WRONG, deliver=False)
    life.look(OWED_FOR_S / 60 - 1, WRONG, deliver=False)
    (state,) = life.states.values()
    assert state.owed == ["ops", "mail"]
    life.look(OWED_FOR_S / 60, WRONG)
    assert life.told == []


def test_what_is_over_stays_until_it_was_delivered() -> None:
    life = Life()
    life.look(0, WRONG)
    assert [life.look(minute, deliver=False) for minute in (5, 6, 64)] == ["resolved"] * 3
    assert life.look(65) is None


def test_only_the_route_that_was_away_is_owed() -> None:
    states = advance({}, [WRONG], PLAN, BEGIN, watched=["shop"])
    (state,) = states.values()
    assert delivered(state, lambda route: route == "ops").owed == ["mail"]


def test_a_clock_that_went_back_tells_nobody_twice() -> None:
    life = Life()
    life.look(600, WRONG)
    life.look(0, WRONG)
    life.look(1)
    assert life.told == [(600, "firing")]


def test_the_last_text_is_the_one_that_is_kept() -> None:
    states = advance({}, [WRONG], PLAN, BEGIN, watched=["shop"])
    worse = Found("failures", Finding(0.9, 0.2, "90 % failed"), Limits(), sample())
    (state,) = advance(states, [worse], PLAN, BEGIN + 60, watched=["shop"]).values()
    assert (state.text, state.value, state.since) == ("90 % failed", 0.9, BEGIN)
