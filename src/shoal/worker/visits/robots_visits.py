"""robots.txt before a page: fetched where the fleet does not know it, obeyed where it forbids."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from shoal.core.blocks import find_block
from shoal.core.failures import FailureKind
from shoal.core.policy import REDIRECT_STATUSES
from shoal.core.records import Robots
from shoal.core.task import Task
from shoal.core.urls import parse
from shoal.errors import FetchError, OwnFault, Refused, TooLate
from shoal.fetch.port import Fetcher, Response
from shoal.fetch.robots import MAX_HOPS, RobotsGate, next_hop, robots_url
from shoal.frontier.values import Lease, Outcome, Verdict
from shoal.runtime.patience import jitter
from shoal.worker.report import Report, give_back
from shoal.worker.visits.outcomes import Judge
from shoal.worker.visits.passages import note_passage
from shoal.worker.visits.sending import Routes, no_routes, send

RobotsSource = Callable[[str], Awaitable[Robots | None]]
"""Returns what the fleet knows of a site's robots.txt."""


class RobotsVisits:
    """Fetches robots.txt, and refuses the visits that it forbids."""

    def __init__(
        self,
        fetcher: Fetcher,
        gate: RobotsGate,
        known_robots: RobotsSource,
        judge: Judge,
        routes: Routes = no_routes,
    ) -> None:
        self._fetcher = fetcher
        self._gate = gate
        self._known_robots = known_robots
        self._judge = judge
        self._routes = routes

    async def learn(self, lease: Lease, send_by: float) -> Report:
        """Spend this lease's permission on robots.txt; its task is given back."""
        known = await self._known_robots(lease.task.site)
        moved = known if known and known.location else None
        url = moved.location if moved else robots_url(lease.task.url)
        request = Task(url=url, proxy_pool=lease.task.proxy_pool)
        try:
            answer: Response | FetchError = await send(
                self._fetcher, lease, request, send_by, self._routes
            )
        except (OwnFault, TooLate):
            return give_back(lease, sent=False)
        except Refused as error:  # The page itself would be refused too.
            return Report(self._failed(lease, str(error), FailureKind.REFUSED, retryable=False))
        except FetchError as error:
            answer = error
        if lease.lent is not None and (ended := self._of_exit(lease, answer)) is not None:
            return Report(ended)
        report = give_back(lease, sent=True)
        report.outcome.wire_bytes = answer.wire_bytes
        report.outcome.robots = _moved_on(lease, answer, moved) or self._gate.read(answer)
        if lease.lent is not None:
            note_passage(report.outcome)
        return report

    def _of_exit(self, lease: Lease, answer: Response | FetchError) -> Outcome | None:
        """Return the outcome of a robots.txt request whose answer says more about its exit than
        about the site: the fleet must not take that for the robots.txt. None: the answer is the
        site's.

        A 403 is the site's answer: it means to all who ask that there is no robots.txt.
        """
        if isinstance(answer, FetchError):
            return self._judge.unanswered(lease, answer, jitter())
        block = find_block(answer.status, answer.headers, answer.body, may_be_empty=True)
        if block is None or block.kind == "forbidden" or answer.status in REDIRECT_STATUSES:
            return None
        outcome = self._judge.blocked(lease, answer, block, time.time(), jitter())
        outcome.wire_bytes = answer.wire_bytes
        return outcome

    async def refusal(self, lease: Lease, robots_at: float) -> Report | None:
        """Return the report of a visit that is not made. None: robots.txt allows it."""
        site, url = lease.task.site, lease.task.url
        if self._gate.recall(site, robots_at, url):
            return None
        stored = await self._known_robots(site)
        if stored is None:  # The crawl was started over meanwhile.
            return give_back(lease, sent=False)
        if stored.error:
            return Report(self._failed(lease, stored.error, FailureKind.ROBOTS, retryable=True))
        if self._gate.allows(site, robots_at, stored, url):
            return None
        reason = "robots.txt forbids it"
        return Report(Outcome(lease=lease, verdict=Verdict.DROPPED, reason=reason, sent=False))

    def _failed(self, lease: Lease, reason: str, kind: FailureKind, *, retryable: bool) -> Outcome:
        return self._judge.failed(
            lease, reason, jitter(), kind=kind, retryable=retryable, sent=False
        )


def _moved_on(lease: Lease, answer: Response | FetchError, moved: Robots | None) -> Robots | None:
    """Return where to look for robots.txt next, if that is on the same host: the permission is for
    that host only. None: there is no such place."""
    hops = moved.hops if moved else 0
    location = next_hop(answer) if isinstance(answer, Response) else None
    if location is None or hops >= MAX_HOPS or parse(location).host != lease.task.site:
        return None
    return Robots("", 0.0, location=location, hops=hops + 1)
