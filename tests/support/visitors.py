"""Assembles visitors of pages for tests."""

from __future__ import annotations

from multidict import CIMultiDict

from shoal.config import Rules
from shoal.core.records import Robots
from shoal.core.task import Task
from shoal.errors import FetchError
from shoal.fetch.port import Fetcher, Request, Response, Route
from shoal.fetch.robots import RobotsGate
from shoal.frontier.admission import Admission
from shoal.spider.spider import Spider
from shoal.worker.visits.failures import FailureHooks
from shoal.worker.visits.known_links import KnownUrls
from shoal.worker.visits.outcomes import Judge
from shoal.worker.visits.page_reader import PageReader
from shoal.worker.visits.recrawl import Earlier
from shoal.worker.visits.robots_visits import RobotsVisits
from shoal.worker.visits.visitor import Visitor

WORKER = "worker"


def page_visitor(
    spider: Spider,
    fetcher: Fetcher,
    rules: Rules,
    *,
    earlier: Earlier | None = None,
    keeps_raw: bool = False,
) -> Visitor:
    """A visitor of pages. No robots.txt is known to the fleet yet."""
    admission = Admission(rules)
    judge = Judge(rules, admission)
    reader = PageReader(spider, rules, admission, KnownUrls(), keeps_raw=keeps_raw)
    robots = RobotsVisits(fetcher, RobotsGate("me"), unknown, judge) if rules.robots else None
    return Visitor(
        WORKER,
        fetcher,
        reader,
        judge,
        robots,
        earlier,
        routes=lambda lent, pool: Route(lent.exit),
        request_hooks=spider._shoal_hooks.request,
        failures=FailureHooks(spider, rules, admission),
    )


class OneAnswer(Fetcher):
    """A fetcher that always answers with one status, or raises an error."""

    def __init__(self, answer: int | FetchError, **headers: str) -> None:
        self._answer = answer
        self._headers = {name.replace("_", "-"): value for name, value in headers.items()}
        self.asked: list[Task] = []

    async def fetch(self, request: Request) -> Response:
        self.asked.append(request.task)
        if isinstance(self._answer, FetchError):
            raise self._answer
        headers = CIMultiDict({"Content-Type": "text/html", **self._headers})
        return Response(request.task.url, self._answer, headers, b"<h1>Lamp</h1>", 0.1)

    async def close(self) -> None:
        return


async def unknown(site: str) -> Robots | None:
    """A lookup of robots.txt that never knows one."""
    return None
