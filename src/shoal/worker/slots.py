"""The slots of a worker: the visits that are under way."""

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
    """For visits of leases that take their host's room until they are finished."""


class Slots:
    """Runs visits. Each ends in one report, also if it fails or is cancelled."""

    def __init__(
        self,
        visit: Callable[[Lease, float, Callable[[], None]], Awaitable[Report]],
        on_answered: Callable[[Lease], None],
        on_over: Callable[[Report], None],
    ) -> None:
        """`on_answered` is told when the request of a shared lease is not at its host any more, if
        that is long before its visit is over."""
        self.visit = visit
        """How visits are made. It may change between two of them."""
        self._on_answered = on_answered
        self._on_over = on_over
        self._visits: dict[asyncio.Task[Report], Lease] = {}

    def start(self, lease: Lease, send_by: float) -> None:
        """Begin a visit. How many there may be at once is for the caller to know."""
        visit = asyncio.create_task(self._guarded(lease, send_by))
        visit.add_done_callback(self._over)
        self._visits[visit] = lease

    def cancel(self, leases: Iterable[Lease]) -> None:
        """End the visits for these leases, where there are any. Their reports come soon."""
        tokens = {lease.token for lease in leases}
        for visit, lease in self._visits.items():
            if lease.token in tokens:
                visit.cancel()

    def cancel_all(self) -> None:
        """End all visits. Their reports come soon."""
        for visit in self._visits:
            visit.cancel()

    async def settle(self, timeout_s: float | None) -> None:
        """Let visits end by themselves; those that take longer are cancelled."""
        if self._visits:
            await asyncio.wait(self._visits.keys(), timeout=timeout_s)
        self.cancel_all()
        if self._visits:
            await asyncio.wait(self._visits.keys())

    async def _guarded(self, lease: Lease, send_by: float) -> Report:
        answered = partial(self._on_answered, lease) if lease.shared else nobody_waits
        try:
            return await self.visit(lease, send_by, answered)
        except StorageError:  # Who leases will meet it too, and say so.
            return give_back(lease, sent=False)
        except Exception as error:
            url = lease.task.url
            fields = about(event="fault", url=url)
            log.exception("visiting %s failed: this is a fault in shoal", url, extra=fields)
            reason = f"internal error: {type(error).__name__}: {error}"
            return Report(Outcome(lease=lease, verdict=Verdict.DEAD, reason=reason))

    def _over(self, visit: asyncio.Task[Report]) -> None:
        """Called when a visit is over, also if it was cancelled before it had begun."""
        lease = self._visits.pop(visit)
        self._on_over(give_up(lease) if visit.cancelled() else visit.result())
