"""Moves tasks that were added before their crawl had a default pool or session.

Seeds may be added before a crawl is started, when its rules are not known yet; and a crawl that was
begun without exits or accounts may continue with them. Such tasks must not be sent without the pool
or session. A task cannot be changed in the frontier, so it ends, and the same request begins again
as a task of the pool, or of the session, whose exits are those of its group.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from msgspec.structs import replace

from shoal.config import Rules
from shoal.core.failures import FailureKind
from shoal.core.identities import pool_of_session
from shoal.core.task import Task
from shoal.errors import BadUrl
from shoal.frontier.admission import Admission, default_pool, default_session
from shoal.frontier.values import Lease, Outcome, Verdict
from shoal.worker.report import Report

Visit = Callable[[Lease, float, Callable[[], None]], Awaitable[Report]]

MOVED = "begins again as a task of {} '{}'"


def kept_to_rules(visit: Visit, rules: Rules) -> Visit:
    """Return a visit that moves tasks which lack the crawl's session or pool, and makes all others
    as `visit` does."""
    session, pool = default_session(rules), default_pool(rules)
    if session is None and pool is None:
        return visit
    admission = Admission(rules)

    async def visit_or_move(lease: Lease, send_by: float, answered: Callable[[], None]) -> Report:
        task = lease.task
        if session is not None and task.session is None:
            words = MOVED.format("session", session)
            again = _again(lease, pool_of_session(session), session=session, proxy_pool=None)
        elif pool is not None and task.pool is None and task.proxy_pool is None:
            words = MOVED.format("pool", pool)
            again = _again(lease, pool, proxy_pool=pool)
        else:
            return await visit(lease, send_by, answered)
        return Report(_moved(lease, again, words, admission))

    return visit_or_move


def _again(lease: Lease, where: str, **changes: Any) -> Task:
    name = uuid5(NAMESPACE_URL, f"{where} {lease.fingerprint.hex()}").hex
    return replace(lease.task, dont_filter=True, task_id=name, retry_count=0, **changes)


def _moved(lease: Lease, again: Task, words: str, admission: Admission) -> Outcome:
    try:
        entry = admission.admit(again, lease.task.site)
    except BadUrl as error:
        kind, reason = FailureKind.REFUSED, str(error)
        return Outcome(lease=lease, verdict=Verdict.DEAD, kind=kind, reason=reason, sent=False)
    return Outcome(
        lease=lease, verdict=Verdict.DROPPED, reason=words, follow_ups=[entry], sent=False
    )
