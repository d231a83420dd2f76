"""What a try by an exit says of the exit, and what becomes of its task."""

from __future__ import annotations

import logging

import pytest

from shoal.config import Rules
from shoal.core.blocks import Block
from shoal.core.exits import Blame, Lent, Passage
from shoal.core.task import Task
from shoal.errors import ExitFault, FetchError, Refused, TooLarge
from shoal.fetch.port import Response
from shoal.frontier.admission import Admission
from shoal.frontier.values import Lease, Outcome, Pushback, Verdict
from shoal.worker.visits.outcomes import Judge, note_answer

URL = "http://a.example/1"
NOW = 1_000_000_000.0
JITTER = 0.5
CHALLENGE = Block("challenge", "says so")


def judge(**rules: object) -> Judge:
    own = Rules(**rules)  # type: ignore[arg-type]
    return Judge(own, Admission(own))


def lease(blocks: int = 0, tried: int = 0, exit_: str = "dc-1") -> Lease:
    lent = Lent(exit_, pool="dc", blocks=blocks, tried=tried)
    return Lease(bytes(8), "token", Task(url=URL, proxy_pool="dc"), lent=lent)


def blocked(leased: Lease, status: int = 403, block: Block = CHALLENGE, **headers: str) -> Outcome:
    response = Response(URL, status, headers, b"12345", 0.25)
    outcome = judge().blocked(leased, response, block, NOW, JITTER)
    note_answer(outcome, response)
    return outcome


def test_a_blocked_task_goes_by_another_exit_soon() -> None:
    outcome = blocked(lease())
    assert (outcome.verdict, outcome.reason) == (Verdict.RETRY, "HTTP 403, challenge")
    assert outcome.passage == Passage(block="challenge", dice=JITTER)
    assert (outcome.blocked, outcome.fault, outcome.pushback) == (1, False, None)
    assert 0 < outcome.retry_in_s < 2


def test_a_guess_is_told_with_its_evidence() -> None:
    assert blocked(lease(), 200).reason == "HTTP 200, challenge (says so)"


def test_too_many_requests_are_those_of_the_exit_and_not_of_the_host() -> None:
    outcome = blocked(lease(), 429, Block("too many requests"), **{"Retry-After": "30"})
    assert outcome.passage == Passage(block="too many requests", retry_after_s=30.0, dice=JITTER)
    assert (outcome.fault, outcome.pushback) == (False, None)


@pytest.mark.parametrize(
    ("blocks", "tried", "reason"),
    [
        (4, 4, "blocked 5 times by 5 exits, last: challenge"),
        (4, 2, "blocked 5 times by 2 exits, last: challenge"),
        (4, 1, "blocked 5 times by 1 exit, last: challenge"),
    ],
)
def test_after_so_many_blocks_it_is_dead(blocks: int, tried: int, reason: str) -> None:
    outcome = blocked(lease(blocks, tried))
    assert (outcome.verdict, outcome.reason) == (Verdict.DEAD, reason)
    assert outcome.passage is not None
    assert outcome.passage.block == "challenge"
    assert blocked(lease(blocks - 1, tried)).verdict is Verdict.RETRY


def test_who_left_directly_as_the_pool_allows_is_pushed_back() -> None:
    outcome = blocked(lease(exit_=""), 429, Block("too many requests"))
    assert outcome.pushback == Pushback()
    assert outcome.passage is not None


def test_without_an_exit_a_block_is_a_host_that_asks_for_less() -> None:
    outcome = blocked(Lease(bytes(8), "token", Task(url=URL)), 200)
    assert (outcome.verdict, outcome.passage) == (Verdict.RETRY, None)
    assert (outcome.blocked, outcome.fault, outcome.pushback) == (1, True, Pushback())


@pytest.mark.parametrize("status", [200, 404, 410, 500, 503, 301])
def test_any_other_answer_is_good(status: int) -> None:
    response = Response(URL, status, {}, b"12345", 0.25)
    outcome = judge().answered(lease(), response, NOW, JITTER)
    note_answer(outcome, response)
    assert outcome.passage == Passage()
    assert (outcome.pushback is not None) == (status == 503)


@pytest.mark.parametrize("blame", [Blame.EXIT, Blame.FORGED])
def test_an_exit_that_cannot_be_used_is_no_try(blame: Blame) -> None:
    outcome = judge().unanswered(lease(), ExitFault("no way in", blame), JITTER)
    assert (outcome.verdict, outcome.sent) == (Verdict.RETURNED, False)
    assert (outcome.passage, outcome.fault) == (Passage(blame), False)


@pytest.mark.parametrize(
    "error", [ExitFault("not reached", Blame.PAIR), FetchError("no answer in time")]
)
def test_an_exit_that_did_not_reach_the_host_is_a_try(error: FetchError) -> None:
    outcome = judge().unanswered(lease(), error, JITTER)
    assert (outcome.verdict, outcome.sent) == (Verdict.RETRY, True)
    assert outcome.passage == Passage(Blame.PAIR)
    # Whether the host is to blame, the frontier finds out.
    assert (outcome.fault, outcome.pushback) == (False, None)
    assert judge(max_retries=0).unanswered(lease(), error, JITTER).verdict is Verdict.DEAD


def test_what_is_too_large_was_answered() -> None:
    outcome = judge().unanswered(lease(), TooLarge("too large"), JITTER)
    assert (outcome.verdict, outcome.passage) == (Verdict.DEAD, Passage())


def test_what_is_refused_here_says_nothing_of_the_exit() -> None:
    outcome = judge().unanswered(lease(), Refused("private"), JITTER)
    assert (outcome.verdict, outcome.sent, outcome.passage) == (Verdict.DEAD, False, None)


def test_a_forger_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    own = judge()
    with caplog.at_level(logging.WARNING, "shoal"):
        for _ in range(3):
            own.unanswered(lease(), ExitFault("not its certificate", Blame.FORGED), JITTER)
    assert [record.getMessage() for record in caplog.records] == [
        "exit dc-1 is not used for a while: not its certificate"
    ]


def test_a_redirect_keeps_the_pool() -> None:
    response = Response(URL, 302, {"Location": "/2"}, b"", 0.25)
    outcome = judge(pools=("dc", "res"), proxy_pool="res").answered(lease(), response, NOW, JITTER)
    assert [entry.task.proxy_pool for entry in outcome.follow_ups] == ["dc"]


def test_a_redirect_of_what_left_directly_does_too() -> None:
    response = Response(URL, 302, {"Location": "/2"}, b"", 0.25)
    direct = Lease(bytes(8), "token", Task(url=URL, proxy_pool="direct"))
    outcome = judge(pools=("dc",), proxy_pool="dc").answered(direct, response, NOW, JITTER)
    assert [entry.task.proxy_pool for entry in outcome.follow_ups] == ["direct"]
