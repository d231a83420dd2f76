"""What a worker may remember of the frontier."""

from __future__ import annotations

import tracemalloc

import pytest

from shoal.core.task import Task
from shoal.frontier.values import Entry
from shoal.worker.visits.known_links import KnownUrls

URL = "https://shop.example/p/1"


def entry(task: Task) -> Entry:
    return Entry(b"12345678", task)


def is_fresh(known: KnownUrls, task: Task) -> bool:
    return known.fresh([task]) == [task]


def test_what_was_added_is_known() -> None:
    known = KnownUrls()
    assert is_fresh(known, Task(url=URL))
    known.add([entry(Task(url=URL))])
    assert not is_fresh(known, Task(url=URL))


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
    assert is_fresh(known, Task(url=URL))
    known.add([entry(Task(url=URL))])
    assert is_fresh(known, task)


def test_memory_is_bounded_and_the_recent_is_kept() -> None:
    known = KnownUrls(limit=100)
    for number in range(1000):
        known.add([entry(Task(url=f"{URL}{number}"))])
    kept = [number for number in range(1000) if not is_fresh(known, Task(url=f"{URL}{number}"))]
    assert kept == list(range(1000 - len(kept), 1000))
    assert 50 <= len(kept) <= 100


def test_it_keeps_no_urls() -> None:
    """They may be as long as they like."""
    known = KnownUrls()
    tracemalloc.start()
    try:
        for number in range(1000):
            known.add([entry(Task(url=URL + "x" * 8_000 + str(number)))])
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 1000 * 1_000


def test_nothing_is_known_of_a_crawl_that_was_started_over() -> None:
    known = KnownUrls()
    known.add([entry(Task(url=URL))])
    known.clear()
    assert is_fresh(known, Task(url=URL))


def test_the_fresh_ones_keep_their_order() -> None:
    known = KnownUrls()
    known.add([entry(Task(url=f"{URL}{number}")) for number in (1, 3)])
    tasks = [Task(url=f"{URL}{number}") for number in (4, 3, 2, 1, 2)]
    assert [task.url for task in known.fresh(tasks)] == [f"{URL}{number}" for number in (4, 2, 2)]


def test_the_session_of_the_crawl_is_what_all_have() -> None:
    known = KnownUrls()
    known.begin("shop")
    known.add([entry(Task(url=URL, session="shop"))])
    assert not is_fresh(known, Task(url=URL))
    assert not is_fresh(known, Task(url=URL, session="shop"))
    for other in ("shop#alice", "staff", "none"):
        assert is_fresh(known, Task(url=URL, session=other))


def test_another_session_is_another_task() -> None:
    known = KnownUrls()
    known.add([entry(Task(url=URL, session="shop"))])
    assert is_fresh(known, Task(url=URL))
    known.add([entry(Task(url=URL))])
    assert is_fresh(known, Task(url=URL, session="shop"))
    known.begin("shop")
    assert is_fresh(known, Task(url=URL)), "it is another task from now on"
