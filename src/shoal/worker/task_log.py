"""Logs tasks that fail, one line each: see `logs.tasks`."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Sequence

from shoal.frontier.values import Outcome, Verdict
from shoal.runtime.logs import about, tasks
from shoal.worker.report import Report

_PORT = re.compile(r":[0-9]+$")
_LEVELS = {Verdict.RETRY: logging.INFO, Verdict.DEAD: logging.WARNING}


def log_failures(
    crawl: str, reports: Sequence[Report], outcomes: Sequence[Outcome], stale: Collection[str]
) -> None:
    """Log each failed try, at a level that depends on how it ended. Stale leases are left out:
    another worker has them by now."""
    if tasks.disabled:
        return
    for report, outcome in zip(reports, outcomes, strict=True):
        level = _LEVELS.get(outcome.verdict)
        if level is None or outcome.lease.token in stale:
            continue
        task, page = outcome.lease.task, report.page
        fields = about(
            event=f"task.{outcome.verdict}",
            crawl=crawl,
            url=task.url,
            host=_PORT.sub("", task.site),
            status=page.status if page else None,
            error=outcome.kind,
            stacktrace=outcome.detail,
            duration_s=round(page.duration_s, 3) if page else None,
        )
        tasks.log(level, "%s: %s", outcome.verdict, outcome.reason, extra=fields)
