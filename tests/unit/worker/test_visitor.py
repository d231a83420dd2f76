"""A visit whose page has very many links, or cannot be read by a fault of our own machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf

import pytest
from multidict import CIMultiDict

from shoal.config import Rules
from shoal.core.task import Task
from shoal.errors import OwnFault, Starved
from shoal.fetch.port import Fetcher, Request, Response
from shoal.frontier.values import Lease, Verdict
from shoal.runtime.patience import OWN_FAULT_PAUSE_S
from shoal.spider.catalogue import Catalogue, catalogues_of, first_tasks
from shoal.spider.page import Page
from shoal.spider.spider import Spider
from shoal.worker.report import Report
from shoal.worker.visits.page_reader import ADMIT_AT_ONCE
from support.until import in_time
from support.visitors import page_visitor

URL = "https://shop.example/"
LINKS = 10 * ADMIT_AT_ONCE


class Linking(Fetcher):
    """Every page has many links."""

    async def fetch(self, request: Request) -> Response:
        body = b"".join(b"<a href=/%d></a>" % number for number in range(LINKS))
        return Response(
            status=200, headers=CIMultiDict(), body=body, url=request.task.url, duration_s=0.1
        )

    async def close(self) -> None:
        return


class Follower(Spider):
    def parse(self, page: Page) -> list[Task]:
        return page.follow_all("a")


class Looker(Spider):
    """Asks for nothing itself."""

    def parse(self, page: Page) -> list[Task]:
        return []


class Pages(Looker):
    catalogue = Catalogue(URL + "?page={page}", last="a")


class Hostile(Linking):
    """Every page is made to be parsed for minutes."""

    async def fetch(self, request: Request) -> Response:
        headers = CIMultiDict({"Content-Type": "text/html"})
        return Response(request.task.url, 200, headers, b"<svg></x>" * 100_000, 0.1)


async def visited(
    rules: Rules,
    spider: Callable[[], Spider] = Follower,
    *,
    failures: int = 0,
    fetcher: Fetcher | None = None,
) -> Report:
    own = spider()
    task = next(first_tasks(catalogues_of(own)), Task(url=URL))
    task.retry_count = failures
    visitor = page_visitor(own, fetcher or Linking(), rules)
    lease = Lease(b"12345678", "token", task, robots_at=0.0)
    return await visitor.visit(lease, inf)


async def test_others_have_their_turn() -> None:
    visit = asyncio.create_task(visited(Rules(robots=False)))
    for _ in range(LINKS // ADMIT_AT_ONCE):
        assert not visit.done()
        await asyncio.sleep(0)
    report = await in_time("the visit's end", visit)
    assert len(report.outcome.follow_ups) == LINKS


async def test_others_have_their_turn_while_a_page_is_tried() -> None:
    visit = asyncio.create_task(visited(Rules(robots=False), fetcher=Hostile()))
    turns = 0
    for _ in range(10_000):
        await asyncio.sleep(0.01)
        turns += 1
        if visit.done():
            break
    outcome = (await in_time("the visit's end", visit)).outcome
    assert (outcome.verdict, outcome.ours) == (Verdict.DEAD, True)
    assert outcome.reason == "Unparsable: the page takes too long to parse"
    assert turns > 10


async def test_links_that_are_too_many_are_counted() -> None:
    report = await visited(Rules(robots=False, max_links_per_page=100))
    assert len(report.outcome.follow_ups) == 100
    assert report.outcome.filtered == LINKS - 100
    assert report.page is not None
    assert report.page.links == LINKS
    assert report.page.error == report.outcome.reason
    assert report.outcome.reason == "9,900 links of it are not followed (max_links_per_page)"


def failing(monkeypatch: pytest.MonkeyPatch, error: OwnFault) -> None:
    def check(page: bytes) -> None:
        raise error

    monkeypatch.setattr("shoal.spider.trial.check", check)


@pytest.mark.parametrize(
    ("spider", "rules"),
    [
        (Follower, Rules(robots=False)),
        (Looker, Rules(robots=False, simhash=True)),
        (Pages, Rules(robots=False)),
    ],
)
async def test_a_page_that_our_machine_cannot_read_is_given_back(
    monkeypatch: pytest.MonkeyPatch, spider: type[Spider], rules: Rules
) -> None:
    waits = []
    real_sleep = asyncio.sleep

    async def sleep(wait_s: float) -> None:
        if wait_s == OWN_FAULT_PAUSE_S:
            waits.append(wait_s)
        else:  # Servers of other tests sleep as well.
            await real_sleep(wait_s)

    failing(monkeypatch, OwnFault("too many open files"))
    monkeypatch.setattr(asyncio, "sleep", sleep)
    outcome = (await visited(rules, spider)).outcome
    assert (outcome.verdict, outcome.sent, outcome.reason) == (Verdict.RETURNED, True, "")
    assert not outcome.fault
    assert waits == [OWN_FAULT_PAUSE_S]  # Else it would be leased again and again.


async def test_one_that_may_be_the_reason_has_no_more_tries_than_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failing(monkeypatch, Starved("it was ended"))
    rules = Rules(robots=False, max_retries=2)
    reports = [await visited(rules, failures=failures) for failures in range(3)]
    verdicts = [report.outcome.verdict for report in reports]
    assert verdicts == [Verdict.RETRY, Verdict.RETRY, Verdict.DEAD]
    assert reports[-1].outcome.reason == "it was ended"
    assert not any(report.outcome.fault for report in reports)


class Answering(Linking):
    """Answers with one status."""

    def __init__(self, status: int) -> None:
        self._status = status

    async def fetch(self, request: Request) -> Response:
        return Response(request.task.url, self._status, CIMultiDict(), b"", 0.1)


@pytest.mark.parametrize(("status", "times"), [(200, 1), (404, 1), (500, 0), (429, 0), (503, 0)])
async def test_it_says_that_the_host_has_answered_unless_it_is_not_well(
    status: int, times: int
) -> None:
    answered: list[str] = []
    visitor = page_visitor(Looker(), Answering(status), Rules(robots=False))
    lease = Lease(b"12345678", "token", Task(url=URL), robots_at=0.0)
    await visitor.visit(lease, inf, lambda: answered.append("once"))
    assert len(answered) == times


@pytest.mark.parametrize(("shared", "order"), [(True, ["sent", "read"]), (False, ["read", "sent"])])
async def test_what_may_be_sent_goes_out_before_the_page_is_read(
    shared: bool, order: list[str]
) -> None:
    """Of hosts whose room is shared: elsewhere nothing waits for an answer."""
    happened: list[str] = []
    following: list[asyncio.Task[None]] = []

    class Noting(Looker):
        def parse(self, page: Page) -> list[Task]:
            happened.append("read")
            return []

    async def send() -> None:
        happened.append("sent")

    visitor = page_visitor(Noting(), Answering(200), Rules(robots=False))
    lease = Lease(b"12345678", "token", Task(url=URL), robots_at=0.0, shared=shared)
    await visitor.visit(lease, inf, lambda: following.append(asyncio.create_task(send())))
    await asyncio.gather(*following)
    assert happened == order
