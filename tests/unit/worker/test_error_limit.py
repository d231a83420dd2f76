from __future__ import annotations

import asyncio

from shoal.config import Rules
from shoal.core.failures import FailureKind
from shoal.frontier.values import CrawlState, Stats
from shoal.worker.error_limit import Deaths, ErrorLimit


def stats(errors: int) -> Stats:
    failures = {FailureKind.HANDLER: errors, FailureKind.TIMEOUT: 1_000}
    return Stats(
        crawl="shop",
        state=CrawlState.RUNNING,
        rules=Rules(),
        created_at=0.0,
        failures_by_kind=failures,
    )


def test_the_limit_is_passed_once_at_each_multiple() -> None:
    limit = ErrorLimit(10)
    passed = [limit.is_passed(stats(errors)) for errors in (0, 9, 10, 17, 20, 29)]
    assert passed == [False, False, True, False, True, False]


def test_what_was_before_the_first_look_does_not_count() -> None:
    limit = ErrorLimit(10)
    assert [limit.is_passed(stats(errors)) for errors in (25, 29, 30)] == [False, False, True]


def test_how_many_are_left_until_the_next_multiple() -> None:
    limit = ErrorLimit(10)
    left = []
    for errors in (0, 9, 10, 25):
        limit.is_passed(stats(errors))
        left.append(limit.left)
    assert left == [10, 1, 10, 5]


async def test_deaths_are_waited_for_until_there_are_enough_or_it_takes_too_long() -> None:
    deaths = Deaths()
    await deaths.wait_for(1, 0.0)
    deaths.note(7)  # Before: those do not count.
    enough = asyncio.create_task(deaths.wait_for(3, 60.0))
    await asyncio.sleep(0)
    deaths.note(2)
    await asyncio.sleep(0)
    assert not enough.done()
    deaths.note(1)
    async with asyncio.timeout(30):
        await enough
