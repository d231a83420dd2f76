"""Visitors of pages, put together for tests."""

from __future__ import annotations

from shoal.config import Rules
from shoal.core.records import Robots
from shoal.fetch.port import Fetcher
from shoal.fetch.robots import RobotsGate
from shoal.frontier.admission import Admission
from shoal.spider.spider import Spider
from shoal.worker.visits.known_links import KnownUrls
from shoal.worker.visits.outcomes import Judge
from shoal.worker.visits.page_reader import PageReader
from shoal.worker.visits.recrawl import Earlier
from shoal.worker.visits.robots_visits import RobotsVisits
from shoal.worker.visits.visitor import Visitor

WORKER = "worker"


def page_visitor(
    spider: Spider, fetcher: Fetcher, rules: Rules, *, earlier: Earlier | None = None
) -> Visitor:
    """A visitor of pages. Nobody has fetched a robots.txt before."""
    admission = Admission(rules)
    judge = Judge(rules, admission)
    reader = PageReader(spider, rules, admission, KnownUrls())
    robots = RobotsVisits(fetcher, RobotsGate("me"), unknown, judge) if rules.robots else None
    return Visitor(WORKER, fetcher, reader, judge, robots, earlier)


async def unknown(site: str) -> Robots | None:
    """No robots.txt is known."""
    return None
