"""Tasks that die or are dropped: the spider hears of it, and what it gives goes with that end."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Any

import pytest

from shoal.config import Rules
from shoal.core.task import Task
from shoal.errors import FetchError
from shoal.frontier.values import Lease, Verdict
from shoal.spider.asking import Drop, Retry
from shoal.spider.failure import Failure
from shoal.spider.page import Page
from shoal.spider.spider import Spider
from shoal.worker.report import Report
from support.visitors import OneAnswer, page_visitor

URL = "https://shop.example/lamp"
RULES = Rules(robots=False, max_retries=0, max_depth=3)


class Telling(Spider):
    error: Exception | None = None

    def parse(self, page: Page) -> Iterator[Any]:
        yield {"title": page.css("h1::text").get()}
        if self.error is not None:
            raise self.error

    def on_failure(self, failure: Failure) -> Iterator[Any]:
        yield {
            "url": failure.url,
            "reason": failure.reason,
            "kind": failure.kind,
            "dropped": failure.dropped,
            "status": failure.page.status if failure.page else None,
            "from": failure.meta.get("from"),
        }
        yield failure.follow("/elsewhere", handler="parse")

    def named(self, failure: Failure) -> Any:
        return [{"named": failure.reason}]

    async def broken(self, failure: Failure) -> Any:
        raise KeyError("no such thing")


async def visit(answer: int | FetchError, spider: Spider | None = None, **fields: Any) -> Report:
    task = Task(url=URL, site="shop.example", **fields)
    lease = Lease(b"12345678", "token", task, robots_at=1.0)
    return await page_visitor(spider or Telling(), OneAnswer(answer), RULES).visit(lease, inf)


def rows(report: Report) -> list[bytes]:
    return [item.data for item in report.items]


async def test_one_that_dies_gives_items_and_tasks_with_its_end() -> None:
    report = await visit(500, meta={"from": "list"})
    outcome = report.outcome

    assert outcome.verdict is Verdict.DEAD
    assert rows(report) == [
        b'{"url":"%s","reason":"HTTP 500","kind":"status_5xx","dropped":false,"status":500'
        b',"from":"list"}' % URL.encode()
    ]
    (follow_up,) = outcome.follow_ups
    assert follow_up.task.url == "https://shop.example/elsewhere"
    assert (follow_up.task.depth, follow_up.task.parent) == (1, b"12345678".hex())
    assert report.page is not None
    assert (outcome.items, report.page.items, report.page.links) == (1, 1, 1)


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        (404, None, b'"reason":"HTTP 404","kind":"","dropped":true,"status":404'),
        (FetchError("no way"), None, b'"kind":"connection","dropped":false,"status":null'),
        (200, ValueError("odd"), b'"reason":"ValueError: odd","kind":"handler"'),
        (200, Retry("busy"), b'"kind":"handler","dropped":false,"status":200'),
        (200, Drop("sold out"), b'"reason":"the spider drops it: sold out","kind":""'),
    ],
)
async def test_it_hears_of_every_end(
    answer: int | FetchError, error: Exception | None, said: bytes
) -> None:
    spider = Telling()
    spider.error = error
    (row,) = rows(await visit(answer, spider))

    assert said in row


async def test_it_hears_of_no_end_that_is_good_nor_of_one_that_is_none() -> None:
    done = await visit(200)
    again = await visit(500, max_retries=1)

    assert rows(done) == [b'{"title":"Lamp"}']
    assert (again.outcome.verdict, rows(again)) == (Verdict.RETRY, [])


async def test_a_task_names_its_own() -> None:
    assert rows(await visit(500, on_failure="named")) == [b'{"named":"HTTP 500"}']


async def test_a_spider_without_one_still_has_those_that_tasks_name() -> None:
    class Quiet(Spider):
        def lost(self, failure: Failure) -> Any:
            return {"lost": failure.url}

    assert rows(await visit(500, Quiet())) == []
    assert len(rows(await visit(500, Quiet(), on_failure="lost"))) == 1


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("broken", "HTTP 500; then on_failure raised KeyError: 'no such thing'"),
        ("missing", "HTTP 500; then on_failure raised UnknownHandler: Telling has no"),
        ("_shoal_hooks", "HTTP 500; then on_failure raised UnknownHandler: Telling has no"),
        ("__init__", "HTTP 500; then on_failure raised UnknownHandler: Telling has no"),
    ],
)
async def test_one_that_raises_changes_nothing_but_the_reason(name: str, said: str) -> None:
    report = await visit(500, on_failure=name)

    assert report.outcome.verdict is Verdict.DEAD
    assert report.outcome.reason.startswith(said)
    assert "Traceback" in report.outcome.detail
    assert (rows(report), report.outcome.follow_ups) == ([], [])


async def test_what_leads_too_deep_or_elsewhere_is_not_followed() -> None:
    report = await visit(500, depth=3)

    assert (list(report.outcome.follow_ups), report.outcome.filtered) == ([], 1)
    assert report.outcome.items == 1
