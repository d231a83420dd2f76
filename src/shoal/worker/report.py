"""What a visit hands to the committer: how it ended, and what is to be stored."""

from __future__ import annotations

import msgspec

from shoal.archive.port import RawPage
from shoal.core.content import page_digest
from shoal.core.records import RejectedItem, StoredItem
from shoal.frontier.values import Lease, Outcome, Verdict
from shoal.results.port import PageLog


class Report(msgspec.Struct):
    """What one try gave: rows to be saved, then the outcome to be finished with."""

    outcome: Outcome
    page: PageLog | None = None
    items: list[StoredItem] = []
    rejected: list[RejectedItem] = []
    raw: RawPage | None = None
    """The page itself, if there is an archive that wants it."""
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
        exit=lent.exit if lent is not None else "",
    )


def give_back(lease: Lease, *, sent: bool) -> Report:
    """The task goes back to the queue as if it had not been tried."""
    return Report(Outcome(lease=lease, verdict=Verdict.RETURNED, sent=sent))
