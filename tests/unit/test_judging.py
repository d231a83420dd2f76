"""What a try says of its host: whether it is well, whether it blocks us, how slow it is."""

from __future__ import annotations

import pytest

from shoal.admission import Admission
from shoal.config import Rules
from shoal.errors import FetchError, Refused, TooLarge
from shoal.fetch.port import Response
from shoal.frontier.values import Lease, Outcome, Pushback, Verdict
from shoal.judging import Judge, note_answer, raised
from shoal.task import Task

URL = "http://a.example/1"
LEASE = Lease(bytes(8), "token", Task(url=URL))


def judge(**rules: object) -> Judge:
    own = Rules(**rules)  # type: ignore[arg-type]
    return Judge(own, Admission(own))


def answered(status: int, **rules: object) -> Outcome:
    response = Response(URL, status, {}, b"12345", 0.25)
    outcome = judge(**rules).answered(LEASE, response)
    note_answer(outcome, response)
    return outcome


def unanswered(error: FetchError, cause: Exception | None = None, **rules: object) -> Outcome:
    error.__cause__ = cause
    return judge(**rules).unanswered(LEASE, error)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 520])
def test_a_host_that_answers_like_this_is_not_well(status: int) -> None:
    outcome = answered(status)
    assert (outcome.fault, outcome.verdict, outcome.sent) == (True, Verdict.RETRY, True)


@pytest.mark.parametrize("status", [200, 301, 400, 403, 404, 410, 418])
def test_any_other_answer_is_that_of_a_healthy_host(status: int) -> None:
    assert not answered(status).fault


def test_refusals_to_serve_us_are_blocks() -> None:
    assert {s for s in range(200, 600) if answered(s).blocked} == {403, 429, 503}


@pytest.mark.parametrize(
    ("status", "headers", "pushback"),
    [
        (429, {}, Pushback()),
        (503, {}, Pushback(meant=False)),
        (503, {"Retry-After": "7"}, Pushback(7.0)),
        (503, {"Retry-After": "soon"}, Pushback(meant=False)),
        (500, {"Retry-After": "7"}, None),
    ],
)
def test_whether_a_refusal_is_the_hosts_word(
    status: int, headers: dict[str, str], pushback: Pushback | None
) -> None:
    outcome = judge().answered(LEASE, Response(URL, status, headers, b"", 0.25))
    assert outcome.pushback == pushback


def test_what_a_handler_raises_is_ours() -> None:
    assert raised(LEASE, KeyError("title")).ours
    assert not answered(418).ours


def test_an_answer_has_a_latency_and_a_size() -> None:
    outcome = answered(404)
    assert (outcome.latency_s, outcome.body_bytes) == (0.25, 5)


def test_no_answer_is_a_fault_and_has_no_latency() -> None:
    outcome = unanswered(FetchError("connection refused"))
    assert (outcome.verdict, outcome.fault, outcome.sent) == (Verdict.RETRY, True, True)
    assert (outcome.blocked, outcome.latency_s) == (False, 0.0)


def test_what_our_own_guard_refused_was_never_sent() -> None:
    outcome = unanswered(Refused("private address"))
    assert (outcome.verdict, outcome.fault, outcome.sent) == (Verdict.DEAD, False, False)


def test_a_body_that_is_too_large_is_not_the_fault_of_a_sick_host() -> None:
    outcome = unanswered(TooLarge("too large"))
    assert (outcome.verdict, outcome.fault, outcome.sent) == (Verdict.DEAD, False, True)


def test_a_timeout_slows_a_host_down_where_its_latency_decides() -> None:
    slow = FetchError("timed out after 30 s")
    assert unanswered(slow, TimeoutError(), rate="auto").pushback == Pushback()
    assert unanswered(slow, TimeoutError(), rate="1/s").pushback is None
    assert unanswered(FetchError("reset"), OSError(), rate="auto").pushback is None


def test_a_fault_of_the_last_try_counts_too() -> None:
    outcome = unanswered(FetchError("connection refused"), max_retries=0)
    assert (outcome.verdict, outcome.fault) == (Verdict.DEAD, True)


def test_a_handler_that_raises_says_nothing_of_the_host() -> None:
    outcome = raised(LEASE, ValueError("broken\npage"))
    assert (outcome.verdict, outcome.reason) == (Verdict.DEAD, "ValueError: broken page")
    assert not outcome.fault
