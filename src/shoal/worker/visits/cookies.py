"""Cookies of visits, if the crawl keeps them: what a request sends, and what its answer changes.

Cookies are kept with the chain of a task. A task without a chain has none, but its redirects carry
along what was set on the way.
"""

from __future__ import annotations

from shoal.config import Rules
from shoal.core.cookies import EMPTY, Jar, changes
from shoal.core.task import Task
from shoal.fetch.port import Response
from shoal.frontier.values import Lease, Outcome


def keeps_cookies(rules: Rules) -> bool:
    """Whether requests carry cookies at all."""
    return rules.cookies != "off"


def header_for(lease: Lease, now: float) -> str:
    """Return the Cookie header of a lease's request; empty if it has none."""
    return _jar_of(lease, now).header(lease.task.url, now)


def note_cookies(outcome: Outcome, response: Response, now: float) -> None:
    """Record what an answer changes in the jar of its chain, whatever became of the task."""
    if outcome.lease.task.chain is not None:
        jar = _jar_after(outcome.lease, response, now)
        if jar != (outcome.lease.cookies or EMPTY):
            outcome.cookies = jar


def note_other_cookies(asked: Task, lease: Lease, response: Response, now: float) -> None:
    """Record that the cookies change at this redirect. To be called before checking for loops: a
    request with other cookies is another request."""
    if not _jar_after(lease, response, now).says_the_same(_jar_of(lease, now)):
        asked.cookies_since = len(asked.redirects)


def bring_along(target: Task, lease: Lease, response: Response, now: float) -> None:
    """Give the target of a redirect the cookies that its chain cannot: if it has no chain, or is at
    another host, where the frontier may keep another jar for the chain."""
    is_kept = target.chain is not None and target.site == lease.task.site
    target.cookies = None if is_kept else _jar_after(lease, response, now) or None


def _jar_of(lease: Lease, now: float) -> Jar:
    kept, brought = lease.cookies or EMPTY, lease.task.cookies
    return kept if brought is None else kept.with_newer(brought, now)


def _jar_after(lease: Lease, response: Response, now: float) -> Jar:
    jar = _jar_of(lease, now)
    lines = response.set_cookies
    return jar.after(changes(jar, lines, lease.task.url, now), now) if lines else jar
