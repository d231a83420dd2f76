"""The frontier's door: every task, from a page, a seed file or an API, comes in through here."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from shoal.config import Rules
from shoal.core.files import FILE
from shoal.core.identities import NO_SESSION
from shoal.core.networks import is_private_literal
from shoal.core.plugins import plugin
from shoal.core.session_config import check_account_name
from shoal.core.shapes import FEW_SLASHES, repeated_segments, shape_of
from shoal.core.task import DIRECT, Task, bad_body, bad_number, raw_body
from shoal.core.urls import (
    FINGERPRINT_BYTES,
    MAX_URL_LENGTH,
    Identity,
    Normaliser,
    allowed_host,
    digest,
    host_matches,
    parse,
    without_port,
)
from shoal.errors import BadUrl, ConfigError
from shoal.frontier.values import Entry


class NotAdmitted(BadUrl):
    """The rules of the crawl do not want this task. Not an error of anybody's."""


class Admission:
    """Checks tasks against the rules of a crawl and finds out who they are."""

    def __init__(self, rules: Rules) -> None:
        self._normaliser = Normaliser(rules.drop_params)
        self._allowed = tuple(allowed_host(host) for host in rules.allowed_hosts)
        self._ports = tuple(host for host in self._allowed if without_port(host) != host)
        self._max_depth = rules.max_depth
        self._shape_of = _shapes(rules)
        self._of_scrapy = _scrapy_fingerprints(rules.fingerprints)
        self._pools = frozenset(rules.pools)
        self._pool = default_pool(rules)
        self._sessions = frozenset(rules.sessions)
        self._session = default_session(rules)

    def admit(self, task: Task, found_on: str | None = None) -> Entry:
        """The task with its site and its fingerprint. `found_on` is the site of the page that leads
        to it: a seed has none. Raises BadUrl or NotAdmitted."""
        if len(task.url) > MAX_URL_LENGTH:
            raise BadUrl(f"URL longer than {MAX_URL_LENGTH} characters: {task.url[:60]!r}…")
        if flaw := bad_number(task):
            raise BadUrl(f"{flaw}: {task.url!r}")
        if task.body is not None and (flaw := bad_body(task)):
            raise BadUrl(f"{flaw}: {task.url!r}")
        if task.session is not None or self._session is not None:
            self._check_session(task)
        if task.proxy_pool is not None or self._pool is not None:
            task.proxy_pool = self._pool_of(task)
        identity = self._normaliser.identify(task.url)
        if not identity.site:
            raise BadUrl(f"URL without a host: {task.url!r}")
        if self._max_depth is not None and task.depth > self._max_depth:
            raise NotAdmitted(f"deeper than {self._max_depth}: {task.url}")
        if self._allowed and not host_matches(identity.site, self._allowed):
            raise NotAdmitted(f"host not allowed: {task.url}")
        site, normal, shape_of = identity.site, identity.normal, self._shape_of
        if found_on is not None and (":" in site or normal.count("/") > FEW_SLASHES):
            self._check_link(task, identity, found_on)
        shape = shape_of(normal) if shape_of and _is_link(task, found_on) else None
        return self._entry(task, normal, site, shape)

    def _check_link(self, task: Task, identity: Identity, found_on: str) -> None:
        """Raises NotAdmitted for what may be a seed, and no link."""
        site = identity.site
        if ":" in site and site != found_on and not self._is_port_allowed(site):
            raise NotAdmitted(f"another port, which allowed_hosts does not name: {task.url}")
        if (segments := repeated_segments(identity.normal)) is not None:
            raise NotAdmitted(f"its path repeats {segments}: {task.url}")

    def _pool_of(self, task: Task) -> str | None:
        """The pool by whose exits it leaves. Where a crawl has one for all, a task that leaves
        directly says so: one that says nothing was admitted before the crawl had it."""
        if self._session_of(task) is not None:
            return None
        pool = task.proxy_pool or self._pool
        if pool is None or pool == DIRECT:
            return DIRECT if self._pool is not None else None
        if pool not in self._pools:
            raise BadUrl(f"no such pool: {pool}: {task.url!r}")
        return pool

    def _session_of(self, task: Task) -> str | None:
        """The accounts that it goes with: its own word, or the crawl's. None: with none."""
        session = task.session or self._session
        return None if session == NO_SESSION else session

    def _check_session(self, task: Task) -> None:
        session = self._session_of(task)
        if session is None:
            return
        group, mark, account = session.partition("#")
        if group not in self._sessions:
            raise BadUrl(f"no such session: {group}: {task.url!r}")
        if mark:
            try:
                check_account_name(account)
            except ConfigError as error:
                raise BadUrl(f"{error}: {task.url!r}") from None
        if task.proxy_pool is not None:
            raise BadUrl(f"the exits of a session are those of its group: {task.url!r}")

    def _is_port_allowed(self, site: str) -> bool:
        """Whether pages of other sites may send us to this one. Ports are hosts of their own to the
        throttle: with links to a thousand of them a page would have us hit one machine a thousand
        times as hard as we may. On machines of our own, ports are what tells servers apart."""
        name = without_port(site)
        return name == site or is_own(name) or host_matches(site, self._ports)

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

    def _entry(self, task: Task, normal: str, site: str, shape: str | None = None) -> Entry:
        task.site = site if self._of_scrapy is None else without_public_port(site)
        task.proxy_pool = task.proxy_pool or None
        if task.session is not None or self._session is not None:
            # Where a crawl has one for all, a task without says so: as with pools.
            task.session = self._session_of(task) or (NO_SESSION if self._session else None)
        if task.dont_filter:
            task.task_id = task.task_id or uuid.uuid4().hex
            key = digest(f"task {task.task_id}")
        elif self._of_scrapy is not None:
            key = self._of_scrapy(task)
        else:
            body = b"" if task.body is None else _sent_body(task)
            # Two accounts see two pages.
            session = () if task.session in (None, NO_SESSION) else (f"session {task.session}",)
            key = digest(normal, task.method, body, *session)
        if task.retry:  # Said once: nothing that is kept has it.
            task.retry = False
            return Entry(key[:FINGERPRINT_BYTES], task, retry=True)
        return Entry(key[:FINGERPRINT_BYTES], task, shape=shape)


def _is_link(task: Task, found_on: str | None) -> bool:
    """Whether it counts for limits of links. A seed does not. The target of a redirect is the page
    that was let in already, and a file leads nowhere: its item would lack it without a word."""
    return found_on is not None and not task.redirects and task.job_type != FILE


def _shapes(rules: Rules) -> Callable[[str], str] | None:
    """How links are told apart that the crawl has a limit for. None: it has none."""
    if rules.max_pages_per_shape is not None:
        return shape_of
    return None if rules.max_pages_per_host is None else lambda normal: ""


def default_pool(rules: Rules) -> str | None:
    """The pool for tasks that name none."""
    return None if rules.proxy_pool == DIRECT else rules.proxy_pool


def default_session(rules: Rules) -> str | None:
    """The accounts for tasks that name none."""
    return None if rules.session == NO_SESSION else rules.session


def _sent_body(task: Task) -> bytes:
    try:
        return raw_body(task)
    except ValueError as error:
        raise BadUrl(f"{error}: {task.url!r}") from None


def without_public_port(site: str) -> str:
    """How a host is scheduled in crawls of Scrapy's, as by Scrapy itself: without its port. Our own
    crawls keep the port, because robots.txt is that of a port."""
    name = without_port(site)
    return site if is_own(name) else name


def is_own(name: str) -> bool:
    """Whether a host is not of the public internet, by its name: localhost, a private address."""
    bare = name.strip("[]")
    return is_private_literal(bare) or not ("." in bare or ":" in bare)


def _scrapy_fingerprints(whose: str) -> Callable[[Task], bytes] | None:
    """How a crawl of Scrapy's tells its requests apart. None if it is no such crawl."""
    if whose == "shoal":
        return None
    made: Callable[[Task], bytes] = plugin("shoal.fingerprints", whose)(whose)
    return made
