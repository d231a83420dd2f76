"""What a worker may remember of the frontier."""

from __future__ import annotations

import pytest

from shoal.frontier.port import Entry
from shoal.known import KnownUrls
from shoal.task import Task

URL = "https://shop.example/p/1"


def entry(task: Task) -> Entry:
    return Entry(b"12345678", task)


def test_what_was_added_is_known() -> None:
    known = KnownUrls()
    assert Task(url=URL) not in known
    known.add([entry(Task(url=URL))])
    assert Task(url=URL) in known


@pytest.mark.parametrize(
    "task",
    [
        Task(url=URL, dont_filter=True),
        Task(url=URL, method="POST"),
        Task(url=URL, body="q=1"),
    ],
)
def test_only_plain_tasks_are_told_by_their_url(task: Task) -> None:
    known = KnownUrls()
    known.add([entry(task)])
    assert Task(url=URL) not in known
    known.add([entry(Task(url=URL))])
    assert task not in known


def test_memory_is_bounded_and_the_recent_is_kept() -> None:
    known = KnownUrls(limit=100)
    for number in range(1000):
        known.add([entry(Task(url=f"{URL}{number}"))])
    kept = [number for number in range(1000) if Task(url=f"{URL}{number}") in known]
    assert kept == list(range(1000 - len(kept), 1000))
    assert 50 <= len(kept) <= 100


def test_nothing_is_known_of_a_crawl_that_was_started_over() -> None:
    known = KnownUrls()
    known.add([entry(Task(url=URL))])
    known.clear()
    assert Task(url=URL) not in known
