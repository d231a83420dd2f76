"""The frontier's door: every task, from a page, a seed file or an API, comes in through here."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from shoal.config import Rules
from shoal.errors import BadUrl
from shoal.frontier.values import Entry
from shoal.task import Task
from shoal.urls import FINGERPRINT_BYTES, Normaliser, allowed_host, digest, host_matches, parse

MAX_URL_LENGTH = 8000


class NotAdmitted(BadUrl):
    """The rules of the crawl do not want this task. Not an error of anybody's."""


class Admission:
    """Checks tasks against the rules of a crawl and finds out who they are."""

    def __init__(self, rules: Rules) -> None:
        self._normaliser = Normaliser(rules.drop_params)
        self._allowed = tuple(allowed_host(host) for host in rules.allowed_hosts)
        self._max_depth = rules.max_depth
        self._of_scrapy = _scrapy_fingerprints(rules.fingerprints)

    def admit(self, task: Task) -> Entry:
        """The task with its site and its fingerprint. Raises BadUrl or NotAdmitted."""
        if len(task.url) > MAX_URL_LENGTH:
            raise BadUrl(f"URL longer than {MAX_URL_LENGTH} characters: {task.url[:60]!r}…")
        identity = self._normaliser.identify(task.url)
        if not identity.site:
            raise BadUrl(f"URL without a host: {task.url!r}")
        if self._max_depth is not None and task.depth > self._max_depth:
            raise NotAdmitted(f"deeper than {self._max_depth}: {task.url}")
        if self._allowed and not host_matches(identity.site, self._allowed):
            raise NotAdmitted(f"host not allowed: {task.url}")
        return self._entry(task, identity.normal, identity.site)

    def fingerprint(self, url: str) -> bytes:
        """The fingerprint under which a plain GET of this URL is known."""
        return self.admitted_as(Task(url=url)).fingerprint

    def admitted_as(self, task: Task) -> Entry:
        """The entry this task would be, whatever the rules say of it. Raises BadUrl."""
        identity = self._normaliser.identify(task.url)
        return self._entry(task, identity.normal, identity.site)

    def same_address(self, url: str) -> Callable[[str], bool]:
        """Tells of a URL whether it is another spelling of this one. Raises BadUrl."""
        normal = self._normaliser.identify(url).normal

        def is_same(other: str) -> bool:
            try:
                return self._normaliser.identify(other).normal == normal
            except BadUrl:
                return False

        return is_same

    def spellings(self, url: str) -> list[str]:
        """The spellings in which this URL most likely comes. Raises BadUrl."""
        identity, href = self._normaliser.identify(url), parse(url).href.partition("#")[0]
        return list(dict.fromkeys([url, href, identity.normal]))

    def _entry(self, task: Task, normal: str, site: str) -> Entry:
        task.site = site
        if task.dont_filter:
            task.task_id = task.task_id or uuid.uuid4().hex
            key = digest(f"task {task.task_id}")
        elif self._of_scrapy is not None:
            key = self._of_scrapy(task)
        else:
            key = digest(normal, task.method, task.body)
        return Entry(key[:FINGERPRINT_BYTES], task)


def _scrapy_fingerprints(whose: str) -> Callable[[Task], bytes] | None:
    """How a crawl of Scrapy's tells its requests apart. None if it is no such crawl."""
    if whose == "shoal":
        return None
    from shoal.scrapy.running.fingerprints import fingerprints_of

    return fingerprints_of(whose)
