"""Decides how a try ended: turns an answer, or the lack of one, into an Outcome. Pure.

The caller passes in the time (`now`) and randomness (`jitter`, a random number in [0, 1)).
"""

from __future__ import annotations

import os
import re
import traceback
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

import msgspec

from shoal.config import Rules
from shoal.core.blocks import Block
from shoal.core.exits import Blame, Lent, Passage
from shoal.core.failures import FailureKind, kind_of, kind_of_status
from shoal.core.policy import (
    BLOCKED_STATUSES,
    GONE_STATUSES,
    MAX_REDIRECTS,
    PUSHBACK_STATUSES,
    REDIRECT_STATUSES,
    RETRY_STATUSES,
    is_meant,
    may_retry,
    parse_rate,
    parse_retry_after,
    retry_wait_s,
)
from shoal.core.redirects import hop, redirected
from shoal.core.task import Task
from shoal.core.urls import join, parse
from shoal.errors import BadUrl, FetchError, Refused
from shoal.fetch.port import Response
from shoal.frontier.admission import Admission, NotAdmitted
from shoal.frontier.values import Lease, Outcome, Pushback, Verdict
from shoal.spider.asking import Drop, Retry
from shoal.worker.visits.cookies import bring_along, keeps_cookies, note_other_cookies
from shoal.worker.visits.passages import (
    Warnings,
    blocked_by_site,
    is_of_exit,
    note_passage,
    passage_of,
    reason_of,
)

MAX_DETAIL = 8_000
MAX_REASON = 500

_OWN = str(Path(__file__).parents[2]) + os.sep
_DEMO = f"{_OWN}demo{os.sep}"
"""A spider as a user would write it."""
_METHOD = re.compile("[A-Z]+ ")


class Judge:
    """Judges tries by the rules of a crawl."""

    def __init__(self, rules: Rules, admission: Admission) -> None:
        self._max_retries = rules.max_retries
        self._max_blocks = rules.max_blocks
        self._auto = parse_rate(rules.rate).auto
        self._keeps_cookies = keeps_cookies(rules)
        self._admission = admission
        self._warnings = Warnings()

    def unanswered(self, lease: Lease, error: FetchError, jitter: float) -> Outcome:
        """Return the outcome of a try without an answer. Where a retry may help, it is blamed on
        the host, or on the exit that the request left by."""
        if lease.lent is not None and lease.lent.exit:
            return self._unanswered_by_exit(lease, lease.lent, error, jitter)
        sent = not isinstance(error, Refused)
        outcome = self.failed(
            lease, str(error), jitter, kind=kind_of(error), retryable=error.retryable, sent=sent
        )
        outcome.fault = error.retryable
        outcome.wire_bytes = error.wire_bytes
        if self._auto and _timed_out(error):
            outcome.pushback = Pushback()
        return outcome

    def _unanswered_by_exit(
        self, lease: Lease, lent: Lent, error: FetchError, jitter: float
    ) -> Outcome:
        """Return the outcome of a try by an exit without an answer.

        An exit that cannot be used is no failure of the task, which goes by another one. Where an
        exit could not reach a host, the frontier finds out which of them is to blame.
        """
        if isinstance(error, Refused):
            kind = FailureKind.REFUSED
            return self.failed(lease, str(error), jitter, kind=kind, retryable=False, sent=False)
        passage = passage_of(error)
        if is_of_exit(passage):
            if passage.blame is Blame.FORGED:
                self._warnings.forged(lent.exit, error)
            return Outcome(
                lease=lease,
                verdict=Verdict.RETURNED,
                reason=one_line(str(error)),
                sent=False,
                wire_bytes=error.wire_bytes,
                passage=passage,
            )
        kind, retryable = kind_of(error), error.retryable
        outcome = self.failed(lease, str(error), jitter, kind=kind, retryable=retryable)
        outcome.wire_bytes = error.wire_bytes
        outcome.passage = passage
        return outcome

    def blocked(
        self, lease: Lease, response: Response, block: Block, now: float, jitter: float
    ) -> Outcome:
        """Return the outcome of a blocked try. By an exit, others may be served; without one, the
        block counts as pushback: the host asks for less."""
        reason = one_line(reason_of(response.status, block))
        wait_s = parse_retry_after(response.headers.get("Retry-After"), now)
        if lease.lent is None:
            outcome = self.failed(
                lease,
                reason,
                jitter,
                kind=FailureKind.BLOCKED,
                retryable=True,
                retry_after_s=wait_s,
            )
            outcome.fault, outcome.pushback = True, Pushback(wait_s)
        else:
            passage = Passage(block=block.kind, retry_after_s=wait_s or 0.0, dice=jitter)
            outcome = blocked_by_site(lease, lease.lent, reason, passage, self._max_blocks)
            if not lease.lent.exit:  # No exit can cool down: the block was for this machine.
                outcome.pushback = Pushback(wait_s)
        outcome.blocked = 1
        return outcome

    def answered(self, lease: Lease, response: Response, now: float, jitter: float) -> Outcome:
        """Return the outcome of an answer that is not a page."""
        status = response.status
        location = response.headers.get("Location")
        if status in REDIRECT_STATUSES and location:
            return self._redirected(lease, response, location, now)
        if status in RETRY_STATUSES:
            return self._not_well(lease, response, now, jitter)
        verdict = Verdict.DROPPED if status in GONE_STATUSES else Verdict.DEAD
        kind = kind_of_status(status)
        return Outcome(lease=lease, verdict=verdict, kind=kind, reason=f"HTTP {status}")

    def failed(
        self,
        lease: Lease,
        reason: str,
        jitter: float,
        *,
        kind: FailureKind,
        retryable: bool,
        retry_after_s: float | None = None,
        sent: bool = True,
    ) -> Outcome:
        """Return a retry for later, if that may help and the task has retries left; otherwise the
        task is dead."""
        failures = lease.task.retry_count + 1
        limit = lease.task.max_retries
        limit = self._max_retries if limit is None else limit
        outcome = Outcome(
            lease=lease, verdict=Verdict.DEAD, kind=kind, reason=one_line(reason), sent=sent
        )
        if retryable and may_retry(failures, limit):
            put_off(outcome, retry_after_s, jitter)
        return outcome

    def asked_again(self, lease: Lease, asked: Retry, jitter: float) -> Outcome:
        """Return the outcome where the spider asks for a retry: its page was there, but not of use
        yet."""
        outcome = self.failed(
            lease,
            f"the spider asks for another try: {asked}".removesuffix(": "),
            jitter,
            kind=FailureKind.HANDLER,
            retryable=True,
            retry_after_s=asked.after_s,
        )
        outcome.ours = True
        return outcome

    def _not_well(self, lease: Lease, response: Response, now: float, jitter: float) -> Outcome:
        wait_s = parse_retry_after(response.headers.get("Retry-After"), now)
        outcome = self.failed(
            lease,
            f"HTTP {response.status}",
            jitter,
            kind=kind_of_status(response.status),
            retryable=True,
            retry_after_s=wait_s,
        )
        outcome.pushback = pushback_of(response.status, wait_s)
        return outcome

    def _redirected(self, lease: Lease, response: Response, location: str, now: float) -> Outcome:
        """Return the outcome of a redirect. The target is a task of its own: it waits for its own
        lease like any other."""
        task = lease.task
        try:
            asked = _redirect(task, response.status, join(parse(task.url), location))
            if self._keeps_cookies or lease.identity is not None:
                note_other_cookies(asked, lease, response, now)
            if (reason := _endless(asked)) is not None:
                return _no_way_on(lease, reason)
            target = self._admission.admit(asked, task.site)
            if target.fingerprint in self._on_the_way(lease):
                target = self._admission.admit(_copy(asked), task.site)
        except NotAdmitted as error:
            return Outcome(lease=lease, verdict=Verdict.DROPPED, reason=f"redirected: {error}")
        except BadUrl as error:
            return _no_way_on(lease, f"redirected: {error}")
        if self._keeps_cookies and lease.identity is None:
            bring_along(target.task, lease, response, now)
        reason = f"HTTP {response.status} to {target.task.url}"
        if left_out := [name for name in task.headers if name not in target.task.headers]:
            reason += f", without {', '.join(left_out)}"
        reason = one_line(reason)
        return Outcome(lease=lease, verdict=Verdict.DONE, reason=reason, follow_ups=[target])

    def _on_the_way(self, lease: Lease) -> set[bytes]:
        """Return the fingerprints of the task and of the pages that redirected to it."""
        pages = [hop for hop in lease.task.redirects if not _METHOD.match(hop)]
        return {lease.fingerprint, *map(self._admission.fingerprint, pages)}


def _no_way_on(lease: Lease, reason: str) -> Outcome:
    """Return the outcome of a redirect that cannot be followed."""
    kind, reason = FailureKind.REDIRECT, one_line(reason)
    return Outcome(lease=lease, verdict=Verdict.DEAD, kind=kind, reason=reason)


def raised(lease: Lease, error: BaseException) -> Outcome:
    """Return the outcome of a handler that raised: it is dead, as a retry would give the same. Or
    dropped, if the handler raised Drop."""
    if isinstance(error, Drop):
        reason = one_line(f"the spider drops it: {error}".removesuffix(": "))
        return Outcome(lease=lease, verdict=Verdict.DROPPED, reason=reason, ours=True)
    return Outcome(
        lease=lease,
        verdict=Verdict.DEAD,
        kind=FailureKind.HANDLER,
        reason=one_line(f"{type(error).__name__}: {error}"),
        detail=tail(error),
        ours=True,
    )


def pushback_of(status: int, retry_after_s: float | None) -> Pushback | None:
    """Return whether a status asks for fewer requests, and how firmly. None: it does not."""
    if status not in PUSHBACK_STATUSES:
        return None
    return Pushback(retry_after_s, meant=is_meant(status, retry_after_s))


def put_off(outcome: Outcome, retry_after_s: float | None, jitter: float) -> None:
    """Make the outcome a retry, after a wait that gets longer each time."""
    failures = outcome.lease.task.retry_count + 1
    outcome.verdict = Verdict.RETRY
    outcome.retry_in_s = retry_wait_s(failures, jitter, retry_after_s)


def note_answer(outcome: Outcome, response: Response) -> None:
    """Record what an answer says about its host and its exit, whatever became of the task."""
    outcome.body_bytes = len(response.body)
    outcome.wire_bytes = response.wire_bytes
    outcome.latency_s = response.duration_s
    if not outcome.blocked:  # Otherwise it was judged by more than its status.
        note_status(outcome, response.status)
    if outcome.lease.lent is not None:
        note_passage(outcome)


def is_success(status: int) -> bool:
    """Whether this is the status of a page."""
    return 200 <= status < 300


def note_accepted(outcome: Outcome, response: Response, now: float) -> None:
    """Treat an answer that the spider accepts like any other. Whether the host asks for less is not
    up to the spider."""
    if outcome.kind is FailureKind.BLOCKED:
        return
    outcome.fault, outcome.blocked = False, 0
    wait_s = parse_retry_after(response.headers.get("Retry-After"), now)
    outcome.pushback = pushback_of(response.status, wait_s)
    if outcome.pushback is not None:
        note_status(outcome, response.status)


def note_status(outcome: Outcome, status: int) -> None:
    """Record what a status says about its host."""
    outcome.fault = status in RETRY_STATUSES
    outcome.blocked = status in BLOCKED_STATUSES


def _timed_out(error: FetchError) -> bool:
    """Whether a fetch timed out. Fetchers say so in the message, for people, and by the cause."""
    return isinstance(error.__cause__, TimeoutError)


def _redirect(task: Task, status: int, url: str) -> Task:
    """Return the task that a redirect asks for. Raises BadUrl."""
    asked = redirected(task, status, url)
    # The place a copy leads to is a page like any other.
    asked.dont_filter = task.dont_filter and task.task_id != _copy_id(task)
    return asked


def _endless(asked: Task) -> str | None:
    """Return why a redirect is not followed: it leads back, or there were too many. None: it is
    followed."""
    if _sent_as(hop(asked)) in map(_sent_as, asked.redirects[asked.cookies_since :]):
        return f"redirects in a loop: {' -> '.join([*asked.redirects, hop(asked)])}"
    if len(asked.redirects) > MAX_REDIRECTS:
        return f"more than {MAX_REDIRECTS} redirects, from {asked.redirects[0]}"
    return None


def _sent_as(hop: str) -> str:
    """Return the part of a hop that is sent: without the fragment."""
    method = _METHOD.match(hop)
    begin = method.end() if method else 0
    return hop[:begin] + parse(hop[begin:]).href.partition("#")[0]


def _copy(asked: Task) -> Task:
    """Return a copy of a redirect's target that is another spelling of its own URL, for instance
    without the tracking parameters. The copy is an entry of its own; otherwise it would count as
    known and not be fetched."""
    return msgspec.structs.replace(asked, dont_filter=True, task_id=_copy_id(asked))


def _copy_id(task: Task) -> str:
    """Return the task_id of a copy: the same each time the try is made again."""
    return uuid5(NAMESPACE_URL, " ".join([*task.redirects, task.url])).hex


def one_line(text: str) -> str:
    """Return a reason as it can be stored and shown."""
    return _storable(" ".join(text.split())[:MAX_REASON])


def tail(error: BaseException) -> str:
    """Return the traceback from where the user's code begins, if there is any. Of a long one only
    the end is kept: it has the cause."""
    begin = error.__traceback__
    while begin is not None and _is_own(begin.tb_frame.f_code.co_filename):
        begin = begin.tb_next
    lines = traceback.format_exception(type(error), error, begin or error.__traceback__)
    return _storable("".join(lines)[-MAX_DETAIL:])


def _is_own(file: str) -> bool:
    return file.startswith(_OWN) and not file.startswith(_DEMO)


def _storable(text: str) -> str:
    """Return text that every store takes: text from a page may hold lone surrogates."""
    return text.encode("utf-8", "replace").decode()
