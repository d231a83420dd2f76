from __future__ import annotations

from shoal.config import Rules
from shoal.core.failures import FailureKind
from shoal.frontier.values import CrawlState, Stats
from shoal.worker.error_limit import ErrorLimit


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
