"""When schedules are due: time zones, clocks that change, names of runs."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.coordinator.cron import Calendar, run_name
from shoal.errors import ConfigError

BERLIN = "Europe/Berlin"


def moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def due(cron: str, after: str, count: int, zone: str = BERLIN) -> list[str]:
    calendar, found = Calendar(cron, zone), []
    at: float | None = moment(after)
    for _ in range(count):
        assert at is not None
        at = calendar.next_after(at)
        assert at is not None
        found.append(datetime.fromtimestamp(at, UTC).strftime("%d %H:%M"))
    return found


def test_clocks_go_forward() -> None:
    """On 29 March 2026 the hour from 2 to 3 is left out: what falls into it is done at its end."""
    assert due("30 2 * * *", "2026-03-28T03:00+01:00", 3) == [
        "29 01:00",
        "30 00:30",
        "31 00:30",
    ]
    assert due("30 1 * * *", "2026-03-28T03:00+01:00", 2) == ["29 00:30", "29 23:30"]
    every_half_hour = due("*/30 * * * *", "2026-03-29T01:15+01:00", 3)
    assert every_half_hour == ["29 00:30", "29 01:00", "29 01:30"]


def test_clocks_go_back() -> None:
    """On 25 October 2026 the hour from 2 to 3 comes twice: what is daily is done once."""
    assert due("30 2 * * *", "2026-10-24T03:00+02:00", 3) == [
        "25 00:30",
        "26 01:30",
        "27 01:30",
    ]
    every_half_hour = due("*/30 * * * *", "2026-10-25T01:45+02:00", 5)
    assert every_half_hour == ["25 00:00", "25 00:30", "25 01:00", "25 01:30", "25 02:00"]


def test_runs_are_named_by_the_clock_there() -> None:
    calendar = Calendar("0 3 * * *", BERLIN)
    assert run_name("shop", calendar, moment("2026-11-15T02:00Z")) == "shop@2026-11-15T03:00"
    assert run_name("shop", calendar, moment("2026-11-15T02:00:07Z")) == "shop@2026-11-15T03:00:07"


def test_an_hour_that_comes_twice_gives_two_names() -> None:
    calendar = Calendar("*/30 * * * *", BERLIN)
    assert run_name("shop", calendar, moment("2026-10-25T00:30Z")) == "shop@2026-10-25T02:30"
    assert run_name("shop", calendar, moment("2026-10-25T01:30Z")) == "shop@2026-10-25T02:30+0100"


CRONS = ["*/7 * * * *", "30 2 * * *", "0 */6 * * 1-5", "15,45 1-3 * 3,10 *", "*/13 * * * * *"]


@given(
    st.sampled_from(CRONS),
    st.sampled_from([BERLIN, "UTC", "America/New_York", "Australia/Lord_Howe"]),
    st.floats(moment("2026-01-01T00:00Z"), moment("2027-12-31T00:00Z")),
)
def test_the_next_due_time_and_the_last_one_fit_together(cron: str, zone: str, now: float) -> None:
    calendar = Calendar(cron, zone)
    after = calendar.next_after(now)
    assert after is not None
    assert after > now
    assert calendar.last_until(after) == after
    before = calendar.last_until(now)
    assert before is not None
    assert before <= now
    assert calendar.next_after(before) == after


def test_a_day_that_never_comes() -> None:
    """Of the 1st and the 21st, those that are the last Monday of a month."""
    assert Calendar("* * */20 * 1L", "UTC").next_after(moment("2026-01-01T00:00Z")) is None


@pytest.mark.parametrize(
    ("cron", "zone", "says"),
    [
        ("61 * * * *", "UTC", "cron: '61 * * * *': bad minute"),
        ("often", "UTC", "cron: 'often'"),
        ("", "UTC", "cron: ''"),
        ("0 3 * * *", "Europe/Atlantis", "timezone: 'Europe/Atlantis' is not known"),
        ("0 3 * * *", "../../etc/passwd", "timezone"),
        ("0 3 * * *", "", "timezone"),
    ],
)
def test_mistakes_are_told(cron: str, zone: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says.replace("*", r"\*")):
        Calendar(cron, zone)
