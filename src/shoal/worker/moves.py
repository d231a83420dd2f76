"""Tasks that were brought before their crawl had a pool for all: they do not leave without it.

Seeds may be there before anybody has started their crawl, and nobody knows its rules then; and a
crawl that was begun without exits may go on with them. What a task is cannot be changed in the
frontier: so such a one ends, and the same request begins again as a task of the pool.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from uuid import NAMESPACE_URL, uuid5

from msgspec.structs import replace

from shoal.config import Rules
from shoal.errors import BadUrl
from shoal.frontier.admission import Admission, default_pool
from shoal.frontier.values import Lease, Outcome, Verdict
from shoal.worker.report import Report

Visit = Callable[[Lease, float, Callable[[], None]], Awaitable[Report]]

MOVED = "begins again as a task of pool '{}'"


def kept_to_pool(visit: Visit, rules: Rules) -> Visit:
    """Visits under these rules: as they are, but for tasks that do not know of the crawl's pool."""
    pool = default_pool(rules)
    if pool is None:
        return visit
    admission = Admission(rules)

    async def visit_or_move(lease: Lease, send_by: float, answered: Callable[[], None]) -> Report:
        if lease.task.proxy_pool is not None:
            return await visit(lease, send_by, answered)
        return Report(_moved(lease, pool, admission))

    return visit_or_move


def _moved(lease: Lease, pool: str, admission: Admission) -> Outcome:
    name = uuid5(NAMESPACE_URL, f"{pool} {lease.fingerprint.hex()}").hex
    again = replace(lease.task, proxy_pool=pool, dont_filter=True, task_id=name, retry_count=0)
    try:
        entry = admission.admit(again, lease.task.site)
    except BadUrl as error:
        return Outcome(lease=lease, verdict=Verdict.DEAD, reason=str(error), sent=False)
    return Outcome(
        lease=lease,
        verdict=Verdict.DROPPED,
        reason=MOVED.format(pool),
        follow_ups=[entry],
        sent=False,
    )
