"""The report that a visit hands to the committer: how it ended, and what is to be stored."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from shoal.archive.port import RawPage
from shoal.core.content import page_digest
from shoal.core.failures import FailureKind
from shoal.core.files import StoredFile
from shoal.core.identities import IdentityReport, LoginChange
from shoal.core.policy import MAX_DURATION_S
from shoal.core.records import RejectedItem, StoredItem
from shoal.frontier.values import Lease, Outcome, Verdict
from shoal.results.port import PageLog


class Report(msgspec.Struct):
    """The result of one try: rows to save, then the outcome to finish its task with."""

    outcome: Outcome
    page: PageLog | None = None
    items: list[StoredItem] = []
    rejected: list[RejectedItem] = []
    files: list[StoredFile] = []
    """The state of the files that items refer to."""
    file_body: bytes | None = None
    """The body of the file that this try fetched: the one in `files` that is done."""
    raw: RawPage | None = None
    """The raw page, if there is an archive to store it in."""
    status: int | None = None
    """The HTTP status, if there was an answer."""
    parsing_s: float = 0.0
    """Seconds spent in parsing the answer."""
    held_bytes: int = 0
    """Bytes of memory that this report takes until it is committed. Kept by the committer."""


def page_log(
    outcome: Outcome, worker: str, started_at: float, status: int | None, body: bytes
) -> PageLog:
    """Return the page log entry for one try whose outcome is known."""
    task, lent = outcome.lease.task, outcome.lease.lent
    return PageLog(
        fingerprint=outcome.lease.fingerprint,
        url=task.url,
        worker=worker,
        # Blocks are not counted as failed tries, but each of them was a try.
        attempt=task.retry_count + 1 + (lent.blocks if lent is not None else 0),
        started_at=started_at,
        duration_s=max(outcome.lease.now() - started_at, 0.0),
        verdict=outcome.verdict,
        status=status,
        body_bytes=len(body),
        items=outcome.items,
        links=len(outcome.follow_ups) + outcome.duplicates + outcome.filtered,
        error=outcome.reason,
        parent=task.parent,
        digest=page_digest(body) if body else b"",
        exit=_way_of(outcome.lease),
    )


def _way_of(lease: Lease) -> str:
    """Return what a request was sent with: the identity and the exit, where there were any."""
    names = [] if lease.identity is None else [lease.identity.name]
    if lease.lent is not None and lease.lent.exit:
        names.append(lease.lent.exit)
    return " ".join(names)


def note_identity(outcome: Outcome) -> None:
    """Name the identity in the reason of a failed try.

    If the try timed out, its host may still be at work on the request that was given up, so the
    identity rests for a while.
    """
    identity = outcome.lease.identity
    if identity is None or outcome.verdict not in (Verdict.RETRY, Verdict.DEAD):
        return
    outcome.reason = f"{outcome.reason} ({identity.name})"
    if outcome.kind is FailureKind.TIMEOUT:
        outcome.identity = IdentityReport(LoginChange.CUT)


def give_back(lease: Lease, *, sent: bool) -> Report:
    """Return a report that puts the task back into the queue as if it had not been tried."""
    return Report(Outcome(lease=lease, verdict=Verdict.RETURNED, sent=sent))


def not_due(lease: Lease, due: datetime) -> Report | None:
    """Return the report of a visit that comes before its task is due. None: the task is due."""
    wait_s = (due if due.tzinfo else due.replace(tzinfo=UTC)).timestamp() - lease.now()
    if wait_s <= 0:
        return None
    report = give_back(lease, sent=False)
    report.outcome.retry_in_s = min(wait_s, MAX_DURATION_S)
    return report


def give_up(lease: Lease, *, sent: bool = True) -> Report:
    """Return the report of a visit that was cancelled at any point, or that cannot be made here:
    its task goes back into the queue.

    The host may still be at work on the request, so its identity is not used again at once. A
    worker that cannot use the identity does not get it again before others do.
    """
    report = give_back(lease, sent=sent)
    if lease.identity is not None:
        report.outcome.identity = IdentityReport(LoginChange.CUT)
    return report
