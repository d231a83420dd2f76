"""rel=canonical: another address of a page that was read already.

The other address is queued as a task that says so. After that the frontier knows it like any other,
and links to it lead nowhere new. When its turn comes it is dropped without a request, with the
reason. An address that the frontier knew before is fetched as a page of its own.
"""

from __future__ import annotations

from shoal.core.task import Task
from shoal.frontier.values import Lease, Outcome, Verdict
from shoal.spider.page import Page

ALIAS = "_alias"
"""The handler of aliases. No spider has it: names that begin with `_` are no handlers."""

_SAME_AS = "same_as"


def alias_of(page: Page) -> Task | None:
    """The task for the address that a page gives as its own; None if it gives none."""
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
    """The outcome of an alias: it is dropped, and says which page it is."""
    same_as = lease.task.meta.get(_SAME_AS, "another one")
    reason = f"the same page as {same_as}, by its rel=canonical"
    return Outcome(lease=lease, verdict=Verdict.DROPPED, reason=reason, sent=False)
