"""How a request of Scrapy's ended, told from what happened to it."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from OpenSSL import SSL
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse, Response
from twisted.internet.defer import CancelledError
from twisted.internet.error import ConnectError, ConnectionLost, DNSLookupError
from twisted.internet.error import TimeoutError as TwistedTimeout
from twisted.python.failure import Failure
from twisted.web.client import ResponseNeverReceived

from shoal.core.failures import FailureKind
from shoal.core.task import Task
from shoal.frontier.values import Entry, Lease, Outcome, Verdict
from shoal.scrapy.worker.verdicts import Life, report_of
from shoal.worker.report import Report

URL = "https://shop.example/p/1"


def life(answer: Response | Request | Failure | None, **facts: object) -> Life:
    lease = Lease(b"12345678", "token", Task(url=URL, site="shop.example", retry_count=1))
    status = answer.status if isinstance(answer, Response) else None
    return Life(**({"lease": lease, "answer": answer, "status": status, "sent": True} | facts))  # type: ignore[arg-type]


def page(status: int = 200) -> Response:
    return HtmlResponse(URL, status=status, body=b"<h1>one</h1>")


def failure(kind: Callable[..., Exception], *about: str) -> Failure:
    return Failure(kind(*about))  # type: ignore[no-untyped-call]


def report(answer: Response | Request | Failure | None, **facts: object) -> Report:
    return report_of(life(answer, **facts), "worker", time.time(), 0.5, is_logged=True)


def ended(answer: Response | Request | Failure | None, **facts: object) -> Outcome:
    return report(answer, **facts).outcome


def test_a_page_whose_callback_ended_is_done() -> None:
    outcome = ended(page(), was_read=True, scraped=2, duplicates=3)
    assert (outcome.verdict, outcome.reason) == (Verdict.DONE, "")
    assert (outcome.items, outcome.duplicates, outcome.body_bytes) == (2, 3, 12)


def test_what_a_page_led_to_is_finished_with_it() -> None:
    follow_up = Entry(b"87654321", Task(url=f"{URL}0"))
    assert ended(page(), was_read=True, follow_ups=[follow_up]).follow_ups == [follow_up]


GOOD = page()


@pytest.mark.parametrize("answer", [GOOD, failure(TwistedTimeout)])
def test_what_raised_is_dead_with_its_traceback(answer: Response | Failure) -> None:
    try:
        raise KeyError("price")
    except KeyError as error:
        outcome = ended(answer, was_read=True, error=error)
    assert outcome.verdict is Verdict.DEAD
    assert outcome.reason == "KeyError: 'price'"
    assert "Traceback" in outcome.detail
    assert (outcome.ours, outcome.fault) == (True, answer is not GOOD)


@pytest.mark.parametrize(
    ("status", "verdict"),
    [(404, Verdict.DROPPED), (410, Verdict.DROPPED), (403, Verdict.DEAD), (503, Verdict.DEAD)],
)
def test_an_error_page_that_no_callback_saw(status: int, verdict: Verdict) -> None:
    outcome = ended(page(status))
    assert (outcome.verdict, outcome.reason) == (verdict, f"HTTP {status}")
    assert not outcome.ours


def test_a_bare_503_is_not_meant_and_a_429_is() -> None:
    unmeant, meant = ended(page(503)).pushback, ended(page(429)).pushback
    assert unmeant is not None
    assert meant is not None
    assert (unmeant.meant, meant.meant) == (False, True)


def test_an_error_page_that_the_spider_asked_for_is_done() -> None:
    assert ended(page(404), was_read=True).verdict is Verdict.DONE


def test_a_middleware_that_ignores_a_request() -> None:
    outcome = ended(failure(IgnoreRequest, "not today"), sent=False)
    assert (outcome.verdict, outcome.sent) == (Verdict.DROPPED, False)
    assert outcome.reason == "IgnoreRequest: not today"
    assert not outcome.fault


def test_a_page_that_a_spider_middleware_kept_back() -> None:
    outcome = ended(page())
    assert outcome.verdict is Verdict.DEAD
    assert "spider middleware" in outcome.reason


def test_no_answer_is_the_hosts_fault() -> None:
    outcome = ended(failure(TwistedTimeout))
    assert (outcome.verdict, outcome.fault) == (Verdict.DEAD, True)
    assert "\n" not in outcome.reason


def test_a_redirect_is_done_and_says_where_to() -> None:
    outcome = ended(Request("https://shop.example/new"), status=302)
    assert (outcome.verdict, outcome.reason) == (Verdict.DONE, "to https://shop.example/new")


def test_a_retry_waits_as_long_as_the_host_asks() -> None:
    outcome = ended(Request(URL), wants_retry=True, status=503, retry_after="120")
    assert (outcome.verdict, outcome.reason) == (Verdict.RETRY, "HTTP 503")
    assert outcome.retry_in_s == 120
    assert outcome.pushback is not None
    assert outcome.pushback.retry_after_s == 120
    assert (outcome.fault, outcome.blocked) == (True, True)


def test_a_retry_without_an_answer_backs_off() -> None:
    outcome = ended(Request(URL), wants_retry=True)
    assert (outcome.reason, outcome.fault) == ("no answer", True)
    assert 1 <= outcome.retry_in_s <= 2  # the second failure


def test_without_results_nothing_is_made_for_the_page_log() -> None:
    assert report_of(life(page(), was_read=True), "worker", 0.0, 0.5, is_logged=False).page is None


def test_the_page_log_tells_the_try() -> None:
    log = report(page(), was_read=True).page
    assert log is not None
    assert (log.url, log.worker, log.attempt, log.status) == (URL, "worker", 2, 200)
    assert (log.verdict, log.body_bytes) == ("done", 12)


def no_answer(*reasons: Exception) -> Failure:
    """As Twisted tells of a connection that broke, and why."""
    return failure(ResponseNeverReceived, [Failure(reason) for reason in reasons])  # type: ignore[arg-type, no-untyped-call]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (failure(TwistedTimeout), FailureKind.TIMEOUT),
        (failure(DNSLookupError), FailureKind.DNS),
        (failure(ConnectError), FailureKind.CONNECTION),
        (no_answer(ConnectionLost()), FailureKind.CONNECTION),
        (no_answer(SSL.Error()), FailureKind.TLS),
        (failure(CancelledError), FailureKind.TOO_LARGE),
        (failure(KeyError), FailureKind.OTHER),
        (page(404), None),
        (page(418), FailureKind.STATUS_4XX),
        (page(500), FailureKind.STATUS_5XX),
        (page(403), FailureKind.BLOCKED),
    ],
)
def test_a_failure_has_a_kind(answer: Response | Failure, kind: FailureKind | None) -> None:
    outcome = ended(answer)
    assert outcome.verdict is (Verdict.DEAD if kind else Verdict.DROPPED)
    assert kind in (None, outcome.kind)
    if kind is not None:
        lost_by = answer.value if isinstance(answer, Failure) else None
        retried = ended(Request(URL), wants_retry=True, lost_by=lost_by, status=status_of(answer))
        assert (retried.verdict, retried.kind) == (Verdict.RETRY, kind)


def status_of(answer: Response | Failure) -> int | None:
    return answer.status if isinstance(answer, Response) else None


def test_an_error_of_a_callback_is_the_projects() -> None:
    assert ended(page(), was_read=True, error=ValueError()).kind is FailureKind.HANDLER
