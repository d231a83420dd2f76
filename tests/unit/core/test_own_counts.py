"""What spiders count of their own: names, numbers, and whose it is."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from shoal.core import own_counts
from shoal.core.own_counts import MAX_COUNT, MAX_NAMES, OTHERS, added, begin, count


def test_a_try_counts_in_its_own_dict() -> None:
    counts = begin()
    count("sold_out")
    count("price", 3)
    count("price", 2)
    count("nothing", 0)

    assert counts == {"sold_out": 1, "price": 5}
    own_counts.forget()
    assert counts == {}


async def test_tries_that_take_turns_do_not_mix() -> None:
    async def visit(name: str) -> dict[str, int]:
        counts = begin()
        for _ in range(3):
            await asyncio.sleep(0)
            await asyncio.create_task(later(name))
        await asyncio.to_thread(count, "threads")
        return counts

    async def later(name: str) -> None:
        await asyncio.sleep(0)
        count(name)

    found = await asyncio.gather(visit("a"), visit("b"))

    assert list(found) == [{"a": 3, "threads": 1}, {"b": 3, "threads": 1}]


async def test_outside_of_a_try_nothing_is_counted() -> None:
    def of_nobody() -> None:
        count("a")
        own_counts.forget()

    await asyncio.to_thread(of_nobody)


@pytest.mark.parametrize("name", ["", "a b", "ü", "x" * 65, OTHERS, 'a"', "a\n", None, 1])
def test_names_are_plain(name: Any) -> None:
    with pytest.raises(ValueError, match="not a name to count by"):
        count(name)


@pytest.mark.parametrize("times", [-1, 1.5, True, "1", None, MAX_COUNT + 1])
def test_numbers_are_whole(times: Any) -> None:
    with pytest.raises(ValueError, match="count a whole number"):
        count("a", times)


def test_a_try_counts_no_more_than_is_bounded() -> None:
    counts = begin()
    for number in range(MAX_NAMES):
        count(f"n{number}", MAX_COUNT)
        count(f"n{number}", MAX_COUNT)

    assert set(counts.values()) == {MAX_COUNT}
    with pytest.raises(ValueError, match="at most 64 names"):
        count("one-more")


def test_parts_are_added_up_and_names_that_are_there_stay() -> None:
    full = {f"n{number:02}": 1 for number in range(MAX_NAMES)}

    assert added([{"a": 1}, {"b": 2, "a": 3}]) == {"a": 4, "b": 2}
    assert added([full | {OTHERS: 1}, {"new": 5, "n63": 1}]) == full | {OTHERS: 6, "n63": 2}
