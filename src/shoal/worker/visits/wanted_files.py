"""Turns the files that a page's items refer to into tasks. For files that may not be fetched, the
reason is noted."""

from __future__ import annotations

import asyncio

from shoal.core.files import FileStatus, StoredFile, known_as
from shoal.errors import BadUrl
from shoal.frontier.admission import Admission
from shoal.frontier.values import Outcome
from shoal.spider.reading import Reading

AT_ONCE = 1_000
"""Files that are admitted before the event loop gets a turn."""


async def add_files(outcome: Outcome, reading: Reading, admission: Admission) -> list[StoredFile]:
    """Add the files to the follow-ups of an outcome. Returns those that will not be fetched."""
    lease, refused = outcome.lease, list(reading.no_files)
    admitted = []
    for number, task in enumerate(reading.files, 1):
        if number % AT_ONCE == 0:
            await asyncio.sleep(0)
        try:
            admitted.append(admission.admit(task, lease.task.site))
        except BadUrl as error:
            refused.append(
                StoredFile(
                    fingerprint=known_as(task, b""),
                    url=task.url,
                    status=FileStatus.DROPPED,
                    at=lease.now(),
                    error=str(error),
                )
            )
    outcome.follow_ups = [*outcome.follow_ups, *admitted]
    outcome.filtered += len(refused)
    return refused
