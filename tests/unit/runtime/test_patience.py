"""Waiting for a store that is away: until it is back, and with few words."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from shoal.errors import StorageBusy, StorageFailed
from shoal.runtime import patience
from shoal.runtime.patience import patiently
from support.until import in_time, until


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "RETRY_FIRST_S", 0.001)
    monkeypatch.setattr(patience, "RETRY_LIMIT_S", 0.002)


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    return lambda: [record.getMessage() for record in caplog.records]


class Store:
    """Answers with how often it was asked, while it is not away."""

    def __init__(self, *, away: bool = False) -> None:
        self.away = away
        self.asked = 0

    async def ask(self) -> int:
        self.asked += 1
        if self.away:
            raise StorageBusy(f"no answer to {self.asked}")
        return self.asked

    async def until_asked(self, times: int) -> None:
        await until(f"{times} questions", lambda: self.asked >= times)


async def test_a_store_that_answers_is_asked_once(said: Callable[[], list[str]]) -> None:
    assert await patiently("store", Store().ask) == 1
    assert said() == []


async def test_a_store_that_is_away_is_asked_until_it_answers(
    said: Callable[[], list[str]],
) -> None:
    store = Store(away=True)
    call = asyncio.create_task(patiently("store", store.ask))
    await store.until_asked(5)
    store.away = False
    assert await in_time("an answer", call) > 5
    assert said() == ["waiting for the store: no answer to 1", "the store is back"]


async def test_many_that_wait_say_it_once(said: Callable[[], list[str]]) -> None:
    for outage in range(2):
        store = Store(away=True)
        calls = [asyncio.create_task(patiently("store", store.ask)) for _ in range(20)]
        await store.until_asked(60)
        store.away = False
        await in_time("all answers", asyncio.gather(*calls))
        assert len(said()) == 2 * (outage + 1)
    assert said()[0::2] == ["waiting for the store: no answer to 1"] * 2
    assert said()[1::2] == ["the store is back"] * 2


async def test_it_is_not_back_while_one_still_waits(said: Callable[[], list[str]]) -> None:
    """As with a file that can be read while nobody can write to it."""
    locked, readable = Store(away=True), Store(away=True)
    write = asyncio.create_task(patiently("store", locked.ask))
    read = asyncio.create_task(patiently("store", readable.ask))
    await readable.until_asked(2)
    readable.away = False
    await in_time("an answer", read)
    assert await patiently("store", readable.ask)
    assert len(said()) == 1
    locked.away = False
    await in_time("an answer", write)
    assert said()[1:] == ["the store is back"]


async def test_each_store_is_spoken_of_by_itself(said: Callable[[], list[str]]) -> None:
    one, two = Store(away=True), Store(away=True)
    calls = [asyncio.create_task(patiently(f"{n}", s.ask)) for n, s in ((1, one), (2, two))]
    await two.until_asked(2)
    assert [line.split(":")[0] for line in said()] == ["waiting for the 1", "waiting for the 2"]
    one.away = two.away = False
    await in_time("all answers", asyncio.gather(*calls))


async def test_one_that_gives_up_is_waited_for_no_more(said: Callable[[], list[str]]) -> None:
    store = Store(away=True)
    call = asyncio.create_task(patiently("store", store.ask))
    await store.until_asked(3)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    again = asyncio.create_task(patiently("store", store.ask))
    await store.until_asked(6)
    store.away = False
    await in_time("an answer", again)
    assert len(said()) == 3, "two outages, the end of one"


@pytest.mark.parametrize("has_waited", [True, False])
async def test_the_first_answer_wakes_the_others(
    monkeypatch: pytest.MonkeyPatch, said: Callable[[], list[str]], has_waited: bool
) -> None:
    first = Store(away=has_waited)
    call = asyncio.create_task(patiently("store", first.ask)) if has_waited else None
    if has_waited:
        await first.until_asked(2)
    monkeypatch.setattr(patience, "RETRY_FIRST_S", 3600.0)
    late, locked = Store(away=True), Store(away=True)
    others = [asyncio.create_task(patiently("store", store.ask)) for store in (late, locked)]
    await locked.until_asked(1)
    first.away = late.away = False
    await in_time("the first answer", call or patiently("store", first.ask))
    await in_time("an answer", others[0])
    await locked.until_asked(2)
    others[1].cancel()
    with pytest.raises(asyncio.CancelledError):
        await others[1]
    assert locked.asked == 2, "it does not ask all the time"
    assert said()[1:] == ["the store is back"], "though the last one has given up"


async def test_other_errors_are_raised() -> None:
    errors = [StorageBusy("locked"), StorageFailed("disk full")]

    async def fail() -> None:
        raise errors.pop(0)

    with pytest.raises(StorageFailed):
        await patiently("store", fail)
