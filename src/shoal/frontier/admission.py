"""Admission: every task, from a page, a seed file or an API, enters the frontier through here."""

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
    """The rules of the crawl exclude this task. That is not an error."""


class Admission:
    """Checks tasks against the rules of a crawl and gives them their fingerprints."""

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
        """Return the task as an entry, with its site and its fingerprint. `found_on` is the site of
        the page that links to it, None for a seed. Raises BadUrl or NotAdmitted."""
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
        """Raises NotAdmitted for URLs that are allowed as seeds, but not as links."""
        site = identity.site
        if ":" in site and site != found_on and not self._is_port_allowed(site):
            raise NotAdmitted(f"another port, which allowed_hosts does not name: {task.url}")
        if (segments := repeated_segments(identity.normal)) is not None:
            raise NotAdmitted(f"its path repeats {segments}: {task.url}")

    def _pool_of(self, task: Task) -> str | None:
        """The pool whose exits a task leaves by. In a crawl with a default pool, a task that leaves
        directly is marked DIRECT: one without a mark was admitted before there was a default."""
        if self._session_of(task) is not None:
            return None
        pool = task.proxy_pool or self._pool
        if pool is None or pool == DIRECT:
            return DIRECT if self._pool is not None else None
        if pool not in self._pools:
            raise BadUrl(f"no such pool: {pool}: {task.url!r}")
        return pool

    def _session_of(self, task: Task) -> str | None:
        """The session of a task: its own, or the crawl's default. None: it goes without."""
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
        """Whether pages of other sites may link to this one. To the throttle, each port is a host
        of its own: a page with links to a thousand ports would make us hit one machine a thousand
        times as hard as we may. On machines of our own, ports are what tells servers apart."""
        name = without_port(site)
        return name == site or is_own(name) or host_matches(site, self._ports)

    def fingerprint(self, url: str) -> bytes:
        """The fingerprint of a plain GET of this URL."""
        return self.admitted_as(Task(url=url)).fingerprint

    def admitted_as(self, task: Task) -> Entry:
        """The entry this task would be, whether the rules admit it or not. Raises BadUrl."""
        identity = self._normaliser.identify(task.url)
        return self._entry(task, identity.normal, identity.site)

    def same_address(self, url: str) -> Callable[[str], bool]:
        """Return a test of whether a URL is another spelling of this one. Raises BadUrl."""
        normal = self._normaliser.identify(url).normal

        def is_same(other: str) -> bool:
            try:
                return self._normaliser.identify(other).normal == normal
            except BadUrl:
                return False

        return is_same

    def spellings(self, url: str) -> list[str]:
        """The spellings in which this URL most likely occurs. Raises BadUrl."""
        identity, href = self._normaliser.identify(url), parse(url).href.partition("#")[0]
        return list(dict.fromkeys([url, href, identity.normal]))

    def _entry(self, task: Task, normal: str, site: str, shape: str | None = None) -> Entry:
        task.site = site if self._of_scrapy is None else without_public_port(site)
        task.proxy_pool = task.proxy_pool or None
        if task.session is not None or self._session is not None:
            # In a crawl with a default session, a task without one is marked: as with pools.
            task.session = self._session_of(task) or (NO_SESSION if self._session else None)
        if task.dont_filter:
            task.task_id = task.task_id or uuid.uuid4().hex
            key = digest(f"task {task.task_id}")
        elif self._of_scrapy is not None:
            key = self._of_scrapy(task)
        else:
            body = b"" if task.body is None else _sent_body(task)
            # Two accounts may see different pages at the same address.
            session = () if task.session in (None, NO_SESSION) else (f"session {task.session}",)
            key = digest(normal, task.method, body, *session)
        if task.retry:  # An instruction for this one `add`: it is not stored with the task.
            task.retry = False
            return Entry(key[:FINGERPRINT_BYTES], task, retry=True)
        return Entry(key[:FINGERPRINT_BYTES], task, shape=shape)


def _is_link(task: Task, found_on: str | None) -> bool:
    """Whether the limits on links apply to a task. They do not to a seed, to the target of a
    redirect (that page was admitted already), or to a file, which leads nowhere: its item would
    silently lack it."""
    return found_on is not None and not task.redirects and task.job_type != FILE


def _shapes(rules: Rules) -> Callable[[str], str] | None:
    """How links are grouped for the crawl's limits on links. None: it has no such limit."""
    if rules.max_pages_per_shape is not None:
        return shape_of
    return None if rules.max_pages_per_host is None else lambda normal: ""


def default_pool(rules: Rules) -> str | None:
    """The pool of tasks that name none."""
    return None if rules.proxy_pool == DIRECT else rules.proxy_pool


def default_session(rules: Rules) -> str | None:
    """The session of tasks that name none."""
    return None if rules.session == NO_SESSION else rules.session


def _sent_body(task: Task) -> bytes:
    try:
        return raw_body(task)
    except ValueError as error:
        raise BadUrl(f"{error}: {task.url!r}") from None


def without_public_port(site: str) -> str:
    """The name by which crawls of Scrapy's schedule a host: like Scrapy itself, without the port
    of a public one. Our own crawls keep the port, because each port has its own robots.txt."""
    name = without_port(site)
    return site if is_own(name) else name


def is_own(name: str) -> bool:
    """Whether the name of a host shows that it is not on the public internet: localhost, any other
    name without a dot, a private address."""
    bare = name.strip("[]")
    return is_private_literal(bare) or not ("." in bare or ":" in bare)


def _scrapy_fingerprints(whose: str) -> Callable[[Task], bytes] | None:
    """The function that gives requests of a crawl of Scrapy's their fingerprints. None: the crawl
    uses Shoal's own."""
    if whose == "shoal":
        return None
    made: Callable[[Task], bytes] = plugin("shoal.fingerprints", whose)(whose)
    return made
