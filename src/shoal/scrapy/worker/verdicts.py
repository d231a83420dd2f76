"""Verdicts on Scrapy requests: turns what Scrapy did with a request into a report. Pure."""

from __future__ import annotations

import msgspec
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from twisted.python.failure import Failure

from shoal.core.exits import Blame, Lent, Passage
from shoal.core.failures import FailureKind, kind_of_status
from shoal.core.policy import GONE_STATUSES, parse_retry_after
from shoal.core.records import RejectedItem, StoredItem
from shoal.errors import SessionExpired
from shoal.frontier.values import Entry, Lease, Outcome, Pushback, Verdict
from shoal.scrapy.worker.answers import Blocked, NotServed, kind_of_error
from shoal.worker.report import Report, note_identity, page_log
from shoal.worker.visits.identity_visits import logged_out
from shoal.worker.visits.outcomes import note_status, one_line, pushback_of, put_off, raised
from shoal.worker.visits.passages import blocked_by_site, reason_of


class Life(msgspec.Struct, kw_only=True, eq=False):
    """What has happened so far to a request inside Scrapy."""

    lease: Lease
    started_at: float = 0.0
    sent: bool = False
    """Whether it reached the network."""
    status: int | None = None
    """The status of the last answer, whatever the middlewares made of it."""
    retry_after: str | None = None
    latency_s: float = 0.0
    lost_by: BaseException | None = None
    """Why there was no answer, whatever the middlewares made of that."""
    answer: Response | Request | Failure | None = None
    """What the downloader and its middlewares returned in the end."""
    was_read: bool = False
    """Whether the callback was called with the response."""
    parsing_s: float = 0.0
    """Seconds from that call until Scrapy was done with it, including its items and their
    pipelines."""
    wants_retry: bool = False
    error: BaseException | None = None
    """What the callback, the errback or a pipeline raised."""
    follow_ups: list[Entry] = []
    duplicates: int = 0
    filtered: int = 0
    """URLs of a sitemap that Shoal's rules do not admit."""
    scraped: int = 0
    items: list[StoredItem] = []
    rejected: list[RejectedItem] = []
    passage: Passage | None = None
    """What the try says about its exit. None: it was sent without one."""
    not_served: NotServed | None = None
    """Why the request is to be tried by another exit."""
    logged_out: str = ""
    """Why its account is considered logged out. Empty: it is not."""
    wire_bytes: int = 0
    """Bytes that went by the exit, including what was fetched on the side."""

    def note(self, response: Response) -> None:
        """Note what an answer says before it is read."""
        self.status = response.status
        retry_after = response.headers.get("Retry-After")
        self.retry_after = retry_after.decode("latin-1") if retry_after else None


def report_of(
    life: Life, worker: str, now: float, jitter: float, *, is_logged: bool, max_blocks: int = 1
) -> Report:
    """Return the report of a request, for the worker to commit.

    Without results there is no page log. The time and a random number in [0, 1) decide when it is
    retried; by exits, it may be blocked `max_blocks` times.
    """
    retry_after_s = parse_retry_after(life.retry_after, now)
    block, body = "", b""
    if why := _why_out(life):
        outcome = logged_out(life.lease, why)
        outcome.passage, outcome.wire_bytes = life.passage, life.wire_bytes
        if outcome.verdict is Verdict.RETURNED:
            return Report(outcome)  # Whatever it has found, it will find again.
    elif isinstance(life.not_served, Blocked):
        outcome = _blocked(life, life.not_served, retry_after_s, jitter, max_blocks)
        block = life.not_served.block.kind
    elif life.not_served is not None:
        return Report(_without_exit(life, life.not_served))
    else:
        body = life.answer.body if isinstance(life.answer, Response) else b""
        outcome = _ended(life, retry_after_s, jitter)
    note_identity(outcome)
    outcome.latency_s = life.latency_s
    outcome.body_bytes = len(body)
    outcome.wire_bytes = life.wire_bytes
    page = page_log(outcome, worker, life.started_at, life.status, body) if is_logged else None
    if page is not None:
        page.block = block
    report = Report(outcome, page, life.items, life.rejected, status=life.status)
    report.parsing_s = life.parsing_s
    return report


def _why_out(life: Life) -> str:
    """Return why the account of a request is considered logged out. Empty: it is not, or there is
    none."""
    if life.lease.identity is None:
        return ""
    if isinstance(life.error, SessionExpired):
        return str(life.error) or "the callback says so"
    return life.logged_out


def _ended(life: Life, retry_after_s: float | None, jitter: float) -> Outcome:
    outcome = _judged(life, retry_after_s, jitter)
    outcome.sent = life.sent
    outcome.follow_ups = life.follow_ups
    outcome.duplicates, outcome.filtered = life.duplicates, life.filtered
    outcome.items, outcome.rejected = life.scraped, len(life.rejected)
    outcome.passage = life.passage if life.sent else None
    _blame_host(life, outcome, retry_after_s)
    return outcome


def _blocked(
    life: Life, blocked: Blocked, retry_after_s: float | None, jitter: float, max_blocks: int
) -> Outcome:
    """Return the outcome of a blocked try. It is tried by other exits: Scrapy's middlewares and
    callbacks are not told."""
    passage = Passage(block=blocked.block.kind, retry_after_s=retry_after_s or 0.0, dice=jitter)
    reason = one_line(reason_of(blocked.status, blocked.block))
    lent = life.lease.lent or Lent("")
    outcome = blocked_by_site(life.lease, lent, reason, passage, max_blocks)
    outcome.blocked = 1
    if not lent.exit:  # No exit can cool down: the block was for this machine.
        outcome.pushback = Pushback(retry_after_s)
    return outcome


def _without_exit(life: Life, error: NotServed) -> Outcome:
    """Return the outcome of a request whose exit is not usable: that was no try."""
    return Outcome(
        lease=life.lease,
        verdict=Verdict.RETURNED,
        reason=one_line(str(error)),
        sent=False,
        wire_bytes=life.wire_bytes,
        passage=Passage(Blame.EXIT),
    )


def _judged(life: Life, retry_after_s: float | None, jitter: float) -> Outcome:
    lease, answer = life.lease, life.answer
    if life.wants_retry:
        return _retried(life, retry_after_s, jitter)
    if life.error is not None:
        return raised(lease, life.error)
    if isinstance(answer, Request):
        return Outcome(lease=lease, verdict=Verdict.DONE, reason=one_line(f"to {answer.url}"))
    if isinstance(answer, Failure):
        ignored = isinstance(answer.value, IgnoreRequest)
        verdict = Verdict.DROPPED if ignored else Verdict.DEAD
        kind, reason = kind_of_error(answer.value), _reason(answer.value)
        return Outcome(lease=lease, verdict=verdict, kind=kind, reason=reason)
    if not life.was_read:
        verdict = Verdict.DROPPED if life.status in GONE_STATUSES else Verdict.DEAD
        kind = FailureKind.HANDLER if _is_good(life) else kind_of_status(life.status or 0)
        reason, ours = _unread(life), _is_good(life)
        return Outcome(lease=lease, verdict=verdict, kind=kind, reason=reason, ours=ours)
    return Outcome(lease=lease, verdict=Verdict.DONE)


def _retried(life: Life, retry_after_s: float | None, jitter: float) -> Outcome:
    """Return the outcome of a retry. The project's retry middleware decides how often, the frontier
    when."""
    reason = f"HTTP {life.status}" if life.status else "no answer"
    kind = kind_of_status(life.status) if life.status else kind_of_error(life.lost_by)
    outcome = Outcome(lease=life.lease, verdict=Verdict.RETRY, kind=kind, reason=reason)
    put_off(outcome, retry_after_s, jitter)
    return outcome


def _is_good(life: Life) -> bool:
    """Whether nothing is wrong with an answer that the callback did not get."""
    return life.status is None or life.status < 300


def _unread(life: Life) -> str:
    if _is_good(life):
        return "a spider middleware kept it from the callback"
    return f"HTTP {life.status}"


def _reason(error: BaseException | None) -> str:
    text = str(error)
    return one_line(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def _blame_host(life: Life, outcome: Outcome, retry_after_s: float | None) -> None:
    """Record what the answer says about its host, whatever became of the request."""
    if life.status is None:
        if life.passage is not None and life.passage.blame is not Blame.NOBODY:
            return  # The frontier finds out whether the host is at fault.
        outcome.fault = life.sent and outcome.verdict in (Verdict.RETRY, Verdict.DEAD)
        return
    note_status(outcome, life.status)
    outcome.pushback = pushback_of(life.status, retry_after_s)
