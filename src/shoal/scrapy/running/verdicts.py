"""How a request ended: from what Scrapy did with it to a report. Decisions only."""

from __future__ import annotations

import random
import time

import msgspec
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from twisted.python.failure import Failure

from shoal.content import page_digest
from shoal.frontier.port import Entry, Lease, Outcome, Pushback, Verdict
from shoal.judging import BLOCKED_STATUSES, one_line, raised
from shoal.policy import (
    GONE_STATUSES,
    PUSHBACK_STATUSES,
    RETRY_STATUSES,
    parse_retry_after,
    retry_wait_s,
)
from shoal.results.port import PageLog, RejectedItem, StoredItem
from shoal.visit import Report


class Life(msgspec.Struct, kw_only=True, eq=False):
    """What happened to one request inside Scrapy."""

    lease: Lease
    started_at: float = 0.0
    sent: bool = False
    """It reached the network."""
    status: int | None = None
    """Of the last answer that came, whatever the middlewares made of it."""
    retry_after: str | None = None
    latency_s: float = 0.0
    answer: Response | Request | Failure | None = None
    """What the downloader and its middlewares made of it in the end."""
    was_read: bool = False
    """The callback was called with the response."""
    wants_retry: bool = False
    error: BaseException | None = None
    """What the callback, the errback or a pipeline raised."""
    follow_ups: list[Entry] = []
    duplicates: int = 0
    scraped: int = 0
    items: list[StoredItem] = []
    rejected: list[RejectedItem] = []


def report_of(life: Life, worker: str) -> Report:
    """The end of a request, as the worker commits it."""
    outcome = _judged(life)
    outcome.sent = life.sent
    outcome.follow_ups = life.follow_ups
    outcome.duplicates = life.duplicates
    outcome.items, outcome.rejected = life.scraped, len(life.rejected)
    outcome.latency_s = life.latency_s
    outcome.body_bytes = len(_body(life))
    _blame_host(life, outcome)
    return Report(outcome, _page_log(life, outcome, worker), life.items, life.rejected)


def _judged(life: Life) -> Outcome:
    lease, answer = life.lease, life.answer
    if life.wants_retry:
        return _retried(life)
    if life.error is not None:
        return raised(lease, life.error)
    if isinstance(answer, Request):
        return Outcome(lease=lease, verdict=Verdict.DONE, reason=one_line(f"to {answer.url}"))
    if isinstance(answer, Failure):
        ignored = isinstance(answer.value, IgnoreRequest)
        verdict = Verdict.DROPPED if ignored else Verdict.DEAD
        return Outcome(lease=lease, verdict=verdict, reason=_reason(answer.value))
    if not life.was_read:
        verdict = Verdict.DROPPED if life.status in GONE_STATUSES else Verdict.DEAD
        return Outcome(lease=lease, verdict=verdict, reason=_unread(life))
    return Outcome(lease=lease, verdict=Verdict.DONE)


def _retried(life: Life) -> Outcome:
    """How often, the project's retry middleware decides; when, the frontier."""
    wait_s = retry_wait_s(
        life.lease.task.retry_count + 1,
        random.random(),  # noqa: S311 - spreads the retries of a fleet
        parse_retry_after(life.retry_after, time.time()),
    )
    reason = f"HTTP {life.status}" if life.status else "no answer"
    return Outcome(lease=life.lease, verdict=Verdict.RETRY, reason=reason, retry_in_s=wait_s)


def _unread(life: Life) -> str:
    if life.status is None or life.status < 300:
        return "a spider middleware kept it from the callback"
    return f"HTTP {life.status}"


def _reason(error: BaseException | None) -> str:
    text = str(error)
    return one_line(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def _blame_host(life: Life, outcome: Outcome) -> None:
    """What the answer says of its host, whatever became of the request."""
    if life.status is None:
        outcome.fault = life.sent and outcome.verdict in (Verdict.RETRY, Verdict.DEAD)
        return
    outcome.fault = life.status in RETRY_STATUSES
    outcome.blocked = life.status in BLOCKED_STATUSES
    if life.status in PUSHBACK_STATUSES:
        outcome.pushback = Pushback(parse_retry_after(life.retry_after, time.time()))


def _page_log(life: Life, outcome: Outcome, worker: str) -> PageLog:
    task, body = life.lease.task, _body(life)
    return PageLog(
        fingerprint=life.lease.fingerprint,
        url=task.url,
        worker=worker,
        attempt=task.retry_count + 1,
        started_at=life.started_at,
        duration_s=max(time.time() - life.started_at, 0.0),
        verdict=outcome.verdict,
        status=life.status,
        body_bytes=len(body),
        items=outcome.items,
        links=len(life.follow_ups) + life.duplicates,
        error=outcome.reason,
        parent=task.parent,
        digest=page_digest(body) if body else b"",
    )


def _body(life: Life) -> bytes:
    return life.answer.body if isinstance(life.answer, Response) else b""
