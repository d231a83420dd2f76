"""What a visit hands to the committer: how it ended, and what is to be stored."""

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
    """What one try gave: rows to be saved, then the outcome to be finished with."""

    outcome: Outcome
    page: PageLog | None = None
    items: list[StoredItem] = []
    rejected: list[RejectedItem] = []
    files: list[StoredFile] = []
    """What became of files of items."""
    file_body: bytes | None = None
    """The file that this try gave: the one in `files` that is done."""
    raw: RawPage | None = None
    """The page itself, if there is an archive that wants it."""
    status: int | None = None
    """Of the answer, if there was one."""
    parsing_s: float = 0.0
    """How long it took to read what came."""
    held_bytes: int = 0
    """What it takes in memory until it is committed. The committer keeps it."""


def page_log(
    outcome: Outcome, worker: str, started_at: float, status: int | None, body: bytes
) -> PageLog:
    """The entry of the page log for one try, once it is known how it ended."""
    task, lent = outcome.lease.task, outcome.lease.lent
    return PageLog(
        fingerprint=outcome.lease.fingerprint,
        url=task.url,
        worker=worker,
        # Blocks are not counted among failed tries, but were tries.
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
    """What a request was sent with: the identity, and the exit that it left by."""
    names = [] if lease.identity is None else [lease.identity.name]
    if lease.lent is not None and lease.lent.exit:
        names.append(lease.lent.exit)
    return " ".join(names)


def note_identity(outcome: Outcome) -> None:
    """The reason why a try has failed says with which identity it was made. If that took too long,
    the request was given up: its host may still be at work on it, so the identity rests."""
    identity = outcome.lease.identity
    if identity is None or outcome.verdict not in (Verdict.RETRY, Verdict.DEAD):
        return
    outcome.reason = f"{outcome.reason} ({identity.name})"
    if outcome.kind is FailureKind.TIMEOUT:
        outcome.identity = IdentityReport(LoginChange.CUT)


def give_back(lease: Lease, *, sent: bool) -> Report:
    """The task goes back to the queue as if it had not been tried."""
    return Report(Outcome(lease=lease, verdict=Verdict.RETURNED, sent=sent))


def not_due(lease: Lease, due: datetime) -> Report | None:
    """How a visit ends that comes before the time of its task. None: it is time."""
    wait_s = (due if due.tzinfo else due.replace(tzinfo=UTC)).timestamp() - lease.now()
    if wait_s <= 0:
        return None
    report = give_back(lease, sent=False)
    report.outcome.retry_in_s = min(wait_s, MAX_DURATION_S)
    return report


def give_up(lease: Lease, *, sent: bool = True) -> Report:
    """The same for a visit that was cancelled, wherever it was by then, or that cannot be made
    here. Its host may still be at work on the request, so nobody comes with the same identity at
    once; and who cannot use it does not get it again before others."""
    report = give_back(lease, sent=sent)
    if lease.identity is not None:
        report.outcome.identity = IdentityReport(LoginChange.CUT)
    return report
