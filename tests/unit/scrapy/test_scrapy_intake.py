"""Requests on their way to the frontier: none is lost, and the order stays."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import cast

import pytest

from shoal.core.task import Task
from shoal.errors import StorageFailed
from shoal.frontier.port import Frontier
from shoal.frontier.values import Added, Entry
from shoal.scrapy.worker.intake import BATCH, FULL, Intake
from support.until import in_time


class Queue:
    """A frontier, as far as an intake knows it."""

    def __init__(self) -> None:
        self.added: list[str] = []
        self.batches: list[int] = []
        self.open = asyncio.Event()
        self.open.set()
        self.asked = asyncio.Event()
        self.error: Exception | None = None

    async def add(self, crawl: str, entries: Sequence[Entry]) -> Added:
        self.asked.set()
        await in_time("the test to open it", self.open.wait())
        if self.error is not None:
            raise self.error
        self.added += [entry.task.url for entry in entries]
        self.batches.append(len(entries))
        return Added(len(entries))


def entry(number: int) -> Entry:
    return Entry(number.to_bytes(8, "big"), Task(url=f"https://shop.example/{number}"))


def intake_of(queue: Queue) -> Intake:
    return Intake(cast(Frontier, queue), "crawl", lambda: None)


async def test_it_arrives_in_order_and_in_batches() -> None:
    queue = Queue()
    intake = intake_of(queue)
    for number in range(BATCH + 5):
        intake.put(entry(number))
    assert not intake.is_empty
    await intake.flush()
    assert intake.is_empty
    assert queue.added == [entry(number).task.url for number in range(BATCH + 5)]
    assert queue.batches == [BATCH, 5]


async def test_it_is_not_empty_while_the_frontier_has_not_answered() -> None:
    queue = Queue()
    queue.open.clear()
    intake = intake_of(queue)
    intake.put(entry(1))
    flushing = asyncio.create_task(intake.flush())
    await in_time("the queue to be asked", queue.asked.wait())
    assert not intake.is_empty
    queue.open.set()
    await in_time("the flush", flushing)
    assert intake.is_empty


async def test_what_comes_while_it_is_flushed_is_not_waited_for() -> None:
    queue = Queue()
    queue.open.clear()
    intake = intake_of(queue)
    intake.put(entry(1))
    flushing = asyncio.create_task(intake.flush())
    await in_time("the queue to be asked", queue.asked.wait())
    intake.put(entry(2))
    queue.open.set()
    await in_time("the flush", flushing)
    assert queue.added == [entry(1).task.url]
    assert not intake.is_empty


async def test_a_page_need_not_wait_for_what_start_gives() -> None:
    queue = Queue()
    intake = intake_of(queue)
    intake.put(entry(1))
    intake.put(entry(2), of_start=True)
    queue.open.clear()
    flushing = asyncio.create_task(intake.flush_side())
    await in_time("the queue to be asked", queue.asked.wait())
    assert not flushing.done()
    queue.open.set()
    await in_time("the flush", flushing)
    intake.put(entry(3), of_start=True)
    await intake.flush_side()
    assert not intake.is_empty


async def test_it_says_when_it_is_full() -> None:
    queue = Queue()
    intake = intake_of(queue)
    for number in range(FULL):
        await intake.room()
        intake.put(entry(number))
    waiting = asyncio.create_task(intake.room())
    await asyncio.sleep(0)
    assert not waiting.done()
    await intake.flush()
    await in_time("room", waiting)


async def test_two_who_flush_add_nothing_twice() -> None:
    queue = Queue()
    intake = intake_of(queue)
    intake.put(entry(1))
    await asyncio.gather(intake.flush(), intake.flush())
    assert queue.batches == [1]


async def test_what_could_not_be_added_is_kept() -> None:
    queue = Queue()
    intake = intake_of(queue)
    intake.put(entry(1))
    queue.error = StorageFailed("full")
    with pytest.raises(StorageFailed):
        await intake.flush()
    assert not intake.is_empty
    queue.error = None
    await intake.flush()
    assert queue.added == [entry(1).task.url]
