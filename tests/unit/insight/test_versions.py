"""Versions at work: nothing is said unless they differ."""

from __future__ import annotations

from msgspec.structs import replace

from shoal.frontier.values import Pulse
from shoal.insight.rows import worker_row
from shoal.insight.versions import AtWork, at_work, version_lines
from support.frontiers import pulse


def workers(*versions: tuple[str, str]) -> list[Pulse]:
    return [replace(pulse(), version=one, spider_version=two) for one, two in versions]


def test_one_version_is_no_news() -> None:
    assert version_lines([]) == []
    assert version_lines(workers(("1.0", "aa"), ("1.0", "aa"))) == []


def test_those_of_most_workers_come_first() -> None:
    seen = workers(("1.0", "aa"), ("1.1", "bb"), ("1.1", "bb"), ("1.1", ""))
    assert at_work(seen) == [AtWork("1.1", "bb", 2), AtWork("1.0", "aa", 1), AtWork("1.1", "", 1)]
    assert version_lines(seen) == [
        "3 versions at work: 1.1 bb (2 workers), 1.0 aa (1 worker), 1.1 (1 worker)"
    ]


def test_of_many_a_few_are_named() -> None:
    (line,) = version_lines(workers(*(("1.0", f"{number}") for number in range(9))))
    assert line.startswith("9 versions at work: 1.0 0 (1 worker), ")
    assert line.endswith("1.0 4 (1 worker), 4 others")


def test_each_worker_says_its_own() -> None:
    assert worker_row(workers(("1.0", "aa"))[0])[1] == "1.0 aa"
