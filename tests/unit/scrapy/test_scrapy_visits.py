"""A leased task on its way through Scrapy: what the engine says of it becomes its end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from math import inf
from typing import cast

import pytest
from scrapy import Request, Spider
from scrapy.http import HtmlResponse, Response
from scrapy.utils.request import RequestFingerprinter

from shoal.core.task import Task
from shoal.frontier.port import Frontier
from shoal.frontier.values import Entry, Lease, Verdict
from shoal.scrapy.wire.requests import Requests
from shoal.scrapy.worker.intake import Intake
from shoal.scrapy.worker.visits import ScrapyVisits
from shoal.worker.report import Report

URL = "https://shop.example/p/1"


class Shop(Spider):
    name = "shop"

    def parse_product(self, response: Response) -> None: ...


class Scene:
    """Visits, and an engine that a test plays."""

    def __init__(self) -> None:
        self.woken = 0
        self.answered = 0
        self.requests = Requests(Shop(), RequestFingerprinter(), None)
        self.intake = Intake(cast(Frontier, None), "crawl", lambda: None)
        self.visits = ScrapyVisits(
            *("worker", self.requests, self.intake, self._wake), is_logged=True
        )

    def _wake(self) -> None:
        self.woken += 1

    def _note_answer(self) -> None:
        self.answered += 1

    async def begin(self, *, send_by: float = inf, **fields: str) -> asyncio.Task[Report]:
        """Lease a task, and let it get as far as the queue for the engine."""
        lease = Lease(b"12345678", "token", Task(url=URL, **fields))  # type: ignore[arg-type]
        visit = asyncio.create_task(self.visits.visit(lease, send_by, self._note_answer))
        await asyncio.sleep(0)
        return visit

    def next_request(self) -> Request:
        request = self.visits.next_request()
        assert request is not None
        return request

    async def through_the_engine(self, then: Callable[[Request], None]) -> Report:
        """Visit a page; `then` is what the engine does with the request."""
        visit = await self.begin()
        request = self.next_request()
        then(request)
        self.visits.ended(request)
        return await visit


@pytest.fixture
def scene() -> Scene:
    return Scene()


def page() -> Response:
    return HtmlResponse(URL, body=b"<h1>one</h1>")


async def test_a_task_waits_for_the_engine_and_ends_with_it(scene: Scene) -> None:
    visit = await scene.begin(job_type="parse_product")
    assert scene.woken == 1
    request = scene.next_request()
    assert request.callback is not None
    assert request.callback.__name__ == "parse_product"
    assert scene.visits.next_request() is None
    assert scene.visits.answered(request, page())
    scene.visits.reading(request)
    assert not visit.done()
    assert scene.visits.count == 1
    scene.visits.ended(request)
    assert (await visit).outcome.verdict is Verdict.DONE
    assert scene.visits.count == 0


@pytest.mark.parametrize(
    ("status", "answered"), [(200, 1), (404, 1), (None, 0), (429, 0), (500, 0)]
)
async def test_a_request_that_has_left_the_downloader_is_not_at_its_host(
    scene: Scene, status: int | None, answered: int
) -> None:
    """One that the host could not serve keeps its place until it is known how it ended."""
    visit = await scene.begin()
    request = scene.next_request()
    life = scene.visits.life_of(request)
    assert life is not None
    life.status = status
    scene.visits.left_downloader(request)
    scene.visits.left_downloader(Request(URL))  # None of ours.
    assert scene.answered == answered
    scene.visits.ended(request)
    await visit


async def test_a_permission_that_has_lapsed_is_given_back_unsent(scene: Scene) -> None:
    visit = await scene.begin(send_by=time.monotonic() - 1)
    assert scene.visits.next_request() is None
    outcome = (await visit).outcome
    assert (outcome.verdict, outcome.sent) == (Verdict.RETURNED, False)


async def test_what_the_engine_has_not_begun_with_goes_back_when_it_closes(scene: Scene) -> None:
    begun, waiting = await scene.begin(), await scene.begin()
    request = scene.next_request()
    scene.visits.give_back_ready()
    late = await scene.begin()
    for visit in (waiting, late):
        outcome = (await visit).outcome
        assert (outcome.verdict, outcome.sent) == (Verdict.RETURNED, False)
    assert not begun.done()
    scene.visits.ended(request)
    await begun


async def test_a_lost_lease_ends_the_visit_and_not_the_engine(scene: Scene) -> None:
    visit, waiting = await scene.begin(), await scene.begin()
    request = scene.next_request()
    for lost in (visit, waiting):
        lost.cancel()
    await asyncio.wait([visit, waiting])
    assert scene.visits.next_request() is None
    scene.visits.answered(request, page())
    scene.visits.ended(request)
    assert scene.visits.count == 0


async def test_a_callback_that_is_not_there_makes_the_task_dead(scene: Scene) -> None:
    outcome = (await (await scene.begin(job_type="parse_gone"))).outcome
    assert (outcome.verdict, outcome.sent) == (Verdict.DEAD, False)
    assert "shop" in outcome.reason
    assert "parse_gone" in outcome.reason


async def test_a_request_belongs_to_the_page_it_was_found_on(scene: Scene) -> None:
    follow_up = Request(f"{URL}0")

    def engine(request: Request) -> None:
        scene.visits.answered(request, page())
        scene.visits.reading(request)
        assert scene.visits.claim(request, follow_up)
        assert scene.visits.claim(request, {"an": "item"})
        life = scene.visits.parent_of(follow_up)
        assert life is not None
        assert life is scene.visits.life_of(request)
        life.follow_ups.append(Entry(b"87654321", Task(url=follow_up.url)))

    report = await scene.through_the_engine(engine)
    assert [entry.task.url for entry in report.outcome.follow_ups] == [follow_up.url]


async def test_a_retry_does_not_reach_the_engine_again(scene: Scene) -> None:
    def engine(request: Request) -> None:
        again = request.replace(meta={**request.meta, "retry_times": 1}, dont_filter=True)
        assert not scene.visits.answered(request, again)

    assert (await scene.through_the_engine(engine)).outcome.verdict is Verdict.RETRY


async def test_a_callback_may_ask_for_a_retry_too(scene: Scene) -> None:
    def engine(request: Request) -> None:
        scene.visits.answered(request, page())
        scene.visits.reading(request)
        assert not scene.visits.claim(request, request.replace(meta={"retry_times": 1}))

    assert (await scene.through_the_engine(engine)).outcome.verdict is Verdict.RETRY


async def test_a_retry_that_was_changed_is_a_request_of_its_own(scene: Scene) -> None:
    def engine(request: Request) -> None:
        again = request.replace(meta={"retry_times": 1, "proxy": "http://other"})
        assert scene.visits.answered(request, again)
        assert scene.visits.parent_of(again) is scene.visits.life_of(request)

    assert (await scene.through_the_engine(engine)).outcome.verdict is Verdict.DONE


@pytest.mark.parametrize("meta", [{"retry_times": 1}, {}])
async def test_another_page_is_no_retry_whatever_its_meta(
    scene: Scene, meta: dict[str, int]
) -> None:
    def engine(request: Request) -> None:
        assert scene.visits.answered(request, Request(f"{URL}/moved", meta=meta))

    assert (await scene.through_the_engine(engine)).outcome.verdict is Verdict.DONE


async def test_requests_of_others_are_left_alone(scene: Scene) -> None:
    stranger = Request(URL)
    assert scene.visits.answered(stranger, page())
    scene.visits.reading(stranger)
    assert scene.visits.claim(stranger, Request(f"{URL}0"))
    scene.visits.ended(stranger)
    assert scene.visits.parent_of(stranger) is None


async def test_links_are_known_once_the_frontier_has_them(scene: Scene) -> None:
    scene.visits.confirm([Entry(b"87654321", Task(url=URL))])
    assert b"87654321" in scene.visits.known
    scene.visits.start_over()
    assert b"87654321" not in scene.visits.known
