"""The slots of a worker, and the visits under way in them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from shoal.errors import StorageError
from shoal.frontier.values import Lease, Outcome, Verdict
from shoal.runtime.logs import about
from shoal.worker.report import Report, give_back, give_up

log = logging.getLogger("shoal")


def nobody_waits() -> None:
    """Does nothing. Stands in for `answered` where a lease occupies its host until it is
    finished."""


class Slots:
    """Runs visits. Each ends in exactly one report, also if it fails or is cancelled."""

    def __init__(
        self,
        visit: Callable[[Lease, float, Callable[[], None]], Awaitable[Report]],
        on_answered: Callable[[Lease], None],
        on_over: Callable[[Report], None],
    ) -> None:
        """`on_answered` is called when the request of a shared lease has left its host well before
        the visit is over."""
        self.visit = visit
        """How visits are made. It may change between two visits."""
        self._on_answered = on_answered
        self._on_over = on_over
        self._visits: dict[asyncio.Task[Report], Lease] = {}

    def start(self, lease: Lease, send_by: float) -> None:
        """Begin a visit. The caller limits how many run at once."""
        visit = asyncio.create_task(self._guarded(lease, send_by))
        visit.add_done_callback(self._over)
        self._visits[visit] = lease

    def cancel(self, leases: Iterable[Lease]) -> None:
        """Cancel the visits for these leases, if there are any. Their reports come soon."""
        tokens = {lease.token for lease in leases}
        for visit, lease in self._visits.items():
            if lease.token in tokens:
                visit.cancel()

    def cancel_all(self) -> None:
        """Cancel all visits. Their reports come soon."""
        for visit in self._visits:
            visit.cancel()

    async def settle(self, timeout_s: float | None) -> None:
        """Wait for visits to end by themselves; cancel those that take longer than `timeout_s`."""
        if self._visits:
            await asyncio.wait(self._visits.keys(), timeout=timeout_s)
        self.cancel_all()
        if self._visits:
            await asyncio.wait(self._visits.keys())

    async def _guarded(self, lease: Lease, send_by: float) -> Report:
        answered = partial(self._on_answered, lease) if lease.shared else nobody_waits
        try:
            return await self.visit(lease, send_by, answered)
        except StorageError:  # Leasing will meet the same error and report it.
            return give_back(lease, sent=False)
        except Exception as error:
            url = lease.task.url
            fields = about(event="fault", url=url)
            log.exception("visiting %s failed: this is a fault in shoal", url, extra=fields)
            reason = f"internal error: {type(error).__name__}: {error}"
            return Report(Outcome(lease=lease, verdict=Verdict.DEAD, reason=reason))

    def _over(self, visit: asyncio.Task[Report]) -> None:
        """Hand on the report of a finished visit, even of one that was cancelled before it
        began."""
        lease = self._visits.pop(visit)
        self._on_over(give_up(lease) if visit.cancelled() else visit.result())
