"""rel=canonical: another URL of a page that was read already.

The other URL is queued as a task that says so. From then on the frontier knows it like any other,
and links to it lead nowhere new. When the task is leased, it is dropped without a request, with the
reason. A URL that the frontier knew before is fetched as a page of its own.
"""

from __future__ import annotations

from shoal.core.task import Task
from shoal.frontier.values import Lease, Outcome, Verdict
from shoal.spider.page import Page

ALIAS = "_alias"
"""The handler name of aliases. No spider has it: names that begin with `_` are not handlers."""

_SAME_AS = "same_as"


def alias_of(page: Page) -> Task | None:
    """Return the task for the canonical URL that a page names; None if it names none."""
    if page.canonical is None:
        return None
    return Task(
        url=page.canonical,
        job_type=ALIAS,
        depth=page.task.depth,
        meta={_SAME_AS: page.url},
        session=page.task.session,
        parent=page.fingerprint.hex(),
    )


def dropped_alias(lease: Lease) -> Outcome:
    """Return the outcome of an alias: it is dropped, with the page that it stands for as the
    reason."""
    same_as = lease.task.meta.get(_SAME_AS, "another one")
    reason = f"the same page as {same_as}, by its rel=canonical"
    return Outcome(lease=lease, verdict=Verdict.DROPPED, reason=reason, sent=False)
