"""A visit whose page has very many links lets others have their turn."""

from __future__ import annotations

import asyncio
import time
from math import inf

from multidict import CIMultiDict

from shoal.config import Rules
from shoal.fetch.port import Fetcher, Response
from shoal.fetch.robots import RobotsGate
from shoal.frontier.values import Lease, Robots
from shoal.known import KnownUrls
from shoal.page import Page
from shoal.spider import Spider
from shoal.task import Task
from shoal.visit import ADMIT_AT_ONCE, Report, Visitor
from support.until import in_time

URL = "https://shop.example/"
LINKS = 10 * ADMIT_AT_ONCE


class Linking(Fetcher):
    """Every page has many links."""

    async def fetch(self, task: Task, send_by: float = inf) -> Response:
        body = b"".join(b"<a href=/%d></a>" % number for number in range(LINKS))
        return Response(status=200, headers=CIMultiDict(), body=body, url=task.url, duration_s=0.1)

    async def close(self) -> None:
        return


class Follower(Spider):
    def parse(self, page: Page) -> list[Task]:
        return page.follow_all("a")


async def visited(rules: Rules) -> Report:
    async def no_robots(site: str) -> Robots | None:
        raise AssertionError("robots.txt is switched off")

    visitor = Visitor(
        Follower(), Linking(), rules, RobotsGate("me"), no_robots, KnownUrls(), "worker"
    )
    lease = Lease(b"12345678", "token", Task(url=URL), robots_at=0.0)
    return await visitor.visit(lease, time.monotonic())


async def test_others_have_their_turn() -> None:
    visit = asyncio.create_task(visited(Rules(robots=False)))
    for _ in range(LINKS // ADMIT_AT_ONCE):
        assert not visit.done()
        await asyncio.sleep(0)
    report = await in_time("the visit's end", visit)
    assert len(report.outcome.follow_ups) == LINKS


async def test_links_that_are_too_many_are_counted() -> None:
    report = await visited(Rules(robots=False, max_links_per_page=100))
    assert len(report.outcome.follow_ups) == 100
    assert report.outcome.filtered == LINKS - 100
    assert report.page is not None
    assert report.page.links == LINKS
    assert report.page.error == report.outcome.reason
    assert report.outcome.reason == "9,900 links of it are not followed (max_links_per_page)"
