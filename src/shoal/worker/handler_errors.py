"""Logs what a spider's handlers and hooks raise: the first traceback of each error, then counts."""

from __future__ import annotations

import logging

from shoal.core.causes import cause_of
from shoal.frontier.values import Outcome
from shoal.runtime.logs import tasks

MAX_KNOWN = 100
"""The most errors that are told apart. A spider with more has one more problem."""

log = logging.getLogger("shoal")


class HandlerErrors:
    """The errors of one worker's handlers."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = {}

    def note(self, outcome: Outcome) -> None:
        """A handler or a hook raised. Nothing is logged here where every failed try has its own
        line in the log."""
        if not tasks.disabled:
            return
        task = outcome.lease.task
        cause = cause_of(outcome.reason, outcome.detail, task.job_type)
        key = task.job_type, cause
        if key not in self._counts and len(self._counts) == MAX_KNOWN:
            return
        count = self._counts[key] = self._counts.get(key, 0) + 1
        if count == 1:
            _log_first(f"{cause}, with {task.url}", outcome.detail)
        elif _is_round(count):
            log.warning("%s × %s", f"{count:,}", cause)


def _log_first(message: str, traceback: str) -> None:
    """Log an error with the traceback kept with its task, which is of bounded length."""
    record = log.makeRecord(log.name, logging.ERROR, "", 0, "%s", (message,), None, sinfo=traceback)
    log.handle(record)


def _is_round(count: int) -> bool:
    """Whether a count is 10, 100, 1,000, ..."""
    digits = str(count)
    return count >= 10 and digits.strip("0") == "1"
