"""Says what a crawl would do with the tasks of a page."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from shoal.config import Rules
from shoal.core.files import FILE
from shoal.core.task import Task
from shoal.errors import BadUrl
from shoal.fetch.robots import RobotsRules
from shoal.frontier.admission import Admission
from shoal.frontier.values import Entry, Lease
from shoal.seeds.sitemap_tasks import SITEMAP
from shoal.spider.spider import ON_FAILURE, Spider, handlers_of
from shoal.worker.visits.canonical import ALIAS

_OUR_OWN = (SITEMAP, FILE)
"""Built-in handlers, which no spider has."""

NEW = "new"


class Decision(msgspec.Struct, frozen=True):
    """A task, and whether it was admitted."""

    task: Task
    entry: Entry | None
    refusal: str = ""


class RecordingAdmission(Admission):
    """Admission that records which tasks it has admitted or refused, and why."""

    def __init__(self, rules: Rules) -> None:
        super().__init__(rules)
        self.decisions: list[Decision] = []

    def admit(self, task: Task, found_on: str | None = None) -> Entry:
        """Admit a task, and record the decision."""
        try:
            entry = super().admit(task, found_on)
        except BadUrl as error:
            self.decisions.append(Decision(task, None, _without_url(str(error), task.url)))
            raise
        self.decisions.append(Decision(task, entry))
        return entry


class Link(msgspec.Struct, frozen=True):
    """A task of a page, and what a crawl would do with it."""

    task: Task
    fate: str
    """`new`, or why it would not be fetched."""

    @property
    def is_new(self) -> bool:
        """Whether a crawl would fetch it, unless it has found it on another page before."""
        return self.fate == NEW


class Fates:
    """Says what a crawl would do with the tasks of one page."""

    def __init__(self, spider: Spider, lease: Lease, robots: RobotsRules | None) -> None:
        """`robots` are those of the page's own host."""
        self._spider = type(spider)
        self._handlers = handlers_of(self._spider)
        self._site = lease.task.site
        self._robots = robots
        self._page = lease.fingerprint
        self._seen: set[bytes] = set()

    def links(self, decisions: Iterable[Decision]) -> list[Link]:
        """One link per task, except for tasks that only note another address of the page."""
        tasks = (each for each in decisions if each.task.job_type != ALIAS)
        return [Link(each.task, self._fate(each)) for each in tasks]

    def _fate(self, decision: Decision) -> str:
        task, entry = decision.task, decision.entry
        if entry is None:
            return decision.refusal
        if entry.fingerprint == self._page:
            return "this page itself"
        if entry.fingerprint in self._seen:
            return "twice on this page"
        self._seen.add(entry.fingerprint)
        return self._lack(task) or self._forbidden(task) or NEW

    def _lack(self, task: Task) -> str:
        name = self._spider.__name__
        if task.job_type not in self._handlers and task.job_type not in _OUR_OWN:
            return f"no handler {task.job_type!r} in {name}"
        if task.on_failure and task.on_failure not in {ON_FAILURE, *self._handlers}:
            return f"no method {task.on_failure!r} for on_failure in {name}"
        return ""

    def _forbidden(self, task: Task) -> str:
        if self._robots is None or task.site != self._site or self._robots.allow(task.url):
            return ""
        return "robots.txt forbids it"


def _without_url(reason: str, url: str) -> str:
    """The reason without the address, which is shown beside it."""
    return reason.removesuffix(f": {url}").removesuffix(f": {url!r}")
