"""Deadlines as people write them."""

from __future__ import annotations

import pytest

from shoal.errors import ConfigError
from shoal.insight.moments import parse_deadline, shown_moment

NOW = 1_000_000_000.0


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("6h", NOW + 21_600),
        ("2001-09-10", 1_000_080_000.0),
        ("2001-09-10T08:00", 1_000_108_800.0),
        ("2001-09-10T08:00+02:00", 1_000_101_600.0),
    ],
)
def test_a_deadline_is_a_time_span_or_a_moment(text: str, moment: float) -> None:
    assert parse_deadline(text, NOW) == moment


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("soon", "neither a time span"),
        ("", "neither a time span"),
        ("-6h", "neither a time span"),
        ("2001-09-08", "lies in the past"),
        ("0001-01-01T00:00+14:00", "lies in the past"),
    ],
)
def test_others_are_told(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=f"^deadline .*{words}"):
        parse_deadline(text, NOW)


def test_a_moment_that_cannot_be_written_is_told_all_the_same() -> None:
    assert shown_moment(NOW) == "2001-09-09 01:46:40"
    assert shown_moment(parse_deadline("9999-12-31T23:59:59", NOW)) == "9999-12-31 23:59:59"
    assert shown_moment(parse_deadline("9999-12-31T23:59:59-14:00", NOW)) == "after 9999"
    assert shown_moment(1e30) == shown_moment(float("inf")) == "after 9999"
