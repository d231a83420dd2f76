"""One who asks for all who look."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from shoal.errors import StorageBusy
from shoal.web.sampler import ANSWERS_KEPT, FRESH_S, KEPT_FACTOR, MAX_KEPT_S, Sampler
from support.frontiers import FakeClock
from support.until import in_time


class Source:
    def __init__(self) -> None:
        self.asked = 0
        self.answers = asyncio.Event()

    async def look(self) -> int:
        self.asked += 1
        await in_time("the answer", self.answers.wait())
        return self.asked


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def sampler(clock: FakeClock) -> Sampler:
    return Sampler(cast(Any, None), clock)


async def test_many_who_look_cost_one_question(sampler: Sampler) -> None:
    source = Source()
    looking = [asyncio.create_task(sampler.ask("crawls", source.look)) for _ in range(100)]
    await asyncio.sleep(0)
    source.answers.set()

    assert await asyncio.gather(*looking) == [1] * 100
    assert await sampler.ask("crawls", source.look) == 1
    assert await sampler.ask("another", source.look) == 2


async def test_who_goes_away_takes_no_answer_from_others(sampler: Sampler) -> None:
    source = Source()
    first, second = (asyncio.create_task(sampler.ask("crawls", source.look)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    source.answers.set()

    assert await second == 1


async def test_it_asks_again_when_the_answer_is_old(sampler: Sampler, clock: FakeClock) -> None:
    source = Source()
    source.answers.set()
    answers = []
    for _ in range(4):
        answers.append(await sampler.ask("crawls", source.look))
        clock.now += 0.6 * FRESH_S

    assert answers == [1, 1, 2, 2]


async def asked_after(sampler: Sampler, clock: FakeClock, took_s: float, rest_s: float) -> bool:
    """Whether a question that took so long is asked again after so long."""
    asked = []

    async def look() -> None:
        asked.append(True)
        clock.now += took_s

    await sampler.ask("crawls", look)
    clock.now += rest_s
    await sampler.ask("crawls", look)
    return len(asked) == 2


async def test_what_takes_long_is_asked_less_often(sampler: Sampler, clock: FakeClock) -> None:
    assert not await asked_after(sampler, clock, took_s=3.0, rest_s=KEPT_FACTOR * 3.0 - 0.1)
    sampler.forget()
    assert await asked_after(sampler, clock, took_s=3.0, rest_s=KEPT_FACTOR * 3.0)
    sampler.forget()
    assert await asked_after(sampler, clock, took_s=60.0, rest_s=MAX_KEPT_S)


async def test_what_failed_is_asked_again_soon_however_long_it_took(
    sampler: Sampler, clock: FakeClock
) -> None:
    asked = []

    async def fail() -> None:
        asked.append(True)
        clock.now += 20.0
        raise StorageBusy("away")

    for rest_s in (0.5 * FRESH_S, 0.5 * FRESH_S, 0.0):
        with pytest.raises(StorageBusy):
            await sampler.ask("crawls", fail, fresh_s=100.0)
        clock.now += rest_s

    assert len(asked) == 2


async def test_it_asks_again_after_a_change(sampler: Sampler) -> None:
    source = Source()
    source.answers.set()

    assert await sampler.ask("crawls", source.look) == 1
    sampler.forget()
    assert await sampler.ask("crawls", source.look) == 2


async def test_errors_are_shared_too(sampler: Sampler) -> None:
    async def fail() -> None:
        raise StorageBusy("away")

    for _ in range(2):
        with pytest.raises(StorageBusy):
            await sampler.ask("crawls", fail)


async def test_answers_are_not_kept_for_ever(sampler: Sampler) -> None:
    source = Source()
    source.answers.set()
    for number in range(2 * ANSWERS_KEPT):
        await sampler.ask(number, source.look)

    assert len(sampler._answers) == ANSWERS_KEPT
