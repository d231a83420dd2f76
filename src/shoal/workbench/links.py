"""What would become of the tasks that a page leads to."""

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
"""Handlers that no spider has."""

NEW = "new"


class Told(msgspec.Struct, frozen=True):
    """A task that asked for admission, and what it was told."""

    task: Task
    entry: Entry | None
    refusal: str = ""


class TellingAdmission(Admission):
    """Admission that remembers whom it has turned away, and why."""

    def __init__(self, rules: Rules) -> None:
        super().__init__(rules)
        self.told: list[Told] = []

    def admit(self, task: Task, found_on: str | None = None) -> Entry:
        """As ever."""
        try:
            entry = super().admit(task, found_on)
        except BadUrl as error:
            self.told.append(Told(task, None, _without_url(str(error), task.url)))
            raise
        self.told.append(Told(task, entry))
        return entry


class Link(msgspec.Struct, frozen=True):
    """A task that a page gives, and what a crawl would do with it."""

    task: Task
    fate: str
    """`new`, or why it would not be fetched."""

    @property
    def is_new(self) -> bool:
        """Whether a crawl would fetch it, unless it knows it from another page."""
        return self.fate == NEW


class Fates:
    """What a crawl would do with tasks that are found on one page."""

    def __init__(self, spider: Spider, lease: Lease, robots: RobotsRules | None) -> None:
        """`robots` are those of the page's own host."""
        self._spider = type(spider)
        self._handlers = handlers_of(self._spider)
        self._site = lease.task.site
        self._robots = robots
        self._page = lease.fingerprint
        self._seen: set[bytes] = set()

    def links(self, told: Iterable[Told]) -> list[Link]:
        """One for each task but those that only note another address of the page."""
        return [Link(each.task, self._fate(each)) for each in told if each.task.job_type != ALIAS]

    def _fate(self, told: Told) -> str:
        if told.entry is None:
            return told.refusal
        if told.entry.fingerprint == self._page:
            return "this page itself"
        if told.entry.fingerprint in self._seen:
            return "twice on this page"
        self._seen.add(told.entry.fingerprint)
        return self._lack(told.task) or self._forbidden(told.task) or NEW

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
    """The address is shown beside it."""
    return reason.removesuffix(f": {url}").removesuffix(f": {url!r}")
