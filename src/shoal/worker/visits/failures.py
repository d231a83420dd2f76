"""Tells spiders of tasks that end without a page. What `on_failure` gives is stored with that
end."""

from __future__ import annotations

from shoal.config import Rules
from shoal.errors import BadUrl
from shoal.frontier.admission import Admission
from shoal.frontier.values import Entry, Lease, Outcome, Verdict
from shoal.spider.failure import Failure
from shoal.spider.page import Page
from shoal.spider.reading import Reading, read_failure
from shoal.spider.spider import Spider
from shoal.worker.report import Report
from shoal.worker.visits.outcomes import one_line, tail
from shoal.worker.visits.wanted_files import add_files

FAILED = frozenset({Verdict.DEAD, Verdict.DROPPED})


class FailureHooks:
    """Tells a spider of tasks that have died or were dropped."""

    def __init__(self, spider: Spider, rules: Rules, admission: Admission) -> None:
        self._spider = spider
        self._max_links = rules.max_links_per_page
        self._admission = admission
        self._tells_all = bool(spider._shoal_hooks.on_failure)

    def wants(self, outcome: Outcome) -> bool:
        """Whether the spider is to be told of this outcome."""
        is_told = self._tells_all or outcome.lease.task.on_failure != ""
        return is_told and outcome.verdict in FAILED

    async def tell(self, report: Report, page: Page | None) -> None:
        """Call `on_failure`, and add what it gives to the report. If it raises, the error is added
        to the reason and changes nothing else: the task has failed already. Raises OwnFault."""
        outcome = report.outcome
        lease, dropped = outcome.lease, outcome.verdict is Verdict.DROPPED
        failure = Failure(
            task=lease.task,
            fingerprint=lease.fingerprint,
            page=page,
            reason=outcome.reason,
            kind="" if dropped else outcome.kind,
            detail=outcome.detail,
            dropped=dropped,
        )
        if page is not None:
            page.max_links = self._max_links
            await page._weigh()
        reading = await read_failure(self._spider, failure, lease.now())
        if reading.error is not None:
            _note_error(report, reading.error)
        else:
            self._add(report, reading)
            if reading.files or reading.no_files:
                refused = await add_files(outcome, reading, self._admission)
                report.files = [*report.files, *refused]

    def _add(self, report: Report, reading: Reading) -> None:
        outcome = report.outcome
        follow_ups = self._admitted(outcome.lease, reading)
        outcome.filtered += len(reading.tasks) - len(follow_ups)
        outcome.follow_ups = [*outcome.follow_ups, *follow_ups]
        outcome.items += len(reading.items)
        outcome.rejected += len(reading.rejected)
        report.items = [*report.items, *reading.items]
        report.rejected = [*report.rejected, *reading.rejected]
        if report.page is not None:
            report.page.items = outcome.items
            report.page.links += len(reading.tasks)

    def _admitted(self, lease: Lease, reading: Reading) -> list[Entry]:
        admitted = []
        for task in reading.tasks[: self._max_links]:
            try:
                admitted.append(self._admission.admit(task, lease.task.site))
            except BadUrl:
                continue
        return admitted


def _note_error(report: Report, error: BaseException) -> None:
    outcome = report.outcome
    said = f"{outcome.reason}; then on_failure raised {type(error).__name__}: {error}"
    outcome.reason = one_line(said)
    outcome.detail = outcome.detail or tail(error)
    if report.page is not None:
        report.page.error = outcome.reason
