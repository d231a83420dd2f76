"""Prepares a leased task for Scrapy: what it needs, and whether it can be sent at all."""

from __future__ import annotations

from typing import Any

from shoal.core.exits import Blame, Passage
from shoal.core.failures import FailureKind
from shoal.core.task import Task
from shoal.fetch.port import Route
from shoal.frontier.values import Lease, Outcome, Verdict
from shoal.scrapy.wire.pools import BY_EXITS
from shoal.scrapy.wire.requests import scheme_of
from shoal.scrapy.worker.fitness import is_fit
from shoal.seeds.sitemap_tasks import NO_ROBOTS_STATUSES, is_robots
from shoal.seeds.sitemap_xml import MAX_BYTES


def meta_for_sitemap(task: Task) -> dict[str, Any]:
    """Return the meta that Scrapy needs to fetch a sitemap, or a robots.txt that names sitemaps."""
    meta: dict[str, Any] = {"download_maxsize": MAX_BYTES}
    if is_robots(task):
        meta |= {
            "dont_obey_robotstxt": True,  # Fetching it is always allowed.
            "handle_httpstatus_list": sorted(NO_ROBOTS_STATUSES),
        }
    return meta


def unfit_outcome(lease: Lease, route: Route) -> Outcome | None:
    """Return the outcome of a try whose route Scrapy cannot take, as after a change of a list.
    None: it can."""
    if (scheme := scheme_of(lease.task.url)) not in BY_EXITS:
        reason = f"its address is {scheme}:, which leaves by no exit"
        kind = FailureKind.REFUSED
        return Outcome(lease=lease, verdict=Verdict.DEAD, kind=kind, reason=reason, sent=False)
    if is_fit(route):
        return None
    reason = f"Scrapy cannot go by {route.name}"
    outcome = Outcome(lease=lease, verdict=Verdict.RETURNED, reason=reason, sent=False)
    outcome.passage = Passage(Blame.EXIT)
    return outcome
