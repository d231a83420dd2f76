"""Visits in which the spider has its say: statuses that it accepts, Retry and Drop, a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Any

import pytest

from shoal.config import Rules
from shoal.core.exits import Lent
from shoal.core.failures import FailureKind
from shoal.core.task import Task
from shoal.errors import ConfigError, FetchError
from shoal.frontier.values import Lease, Verdict
from shoal.spider.asking import Drop, Retry
from shoal.spider.catalogue import KEY, Catalogue
from shoal.spider.outgoing import Outgoing
from shoal.spider.page import Page
from shoal.spider.spider import Spider
from shoal.spider.starting import seeds
from shoal.worker.report import Report
from support.visitors import OneAnswer, page_visitor

URL = "https://shop.example/lamp"
RULES = Rules(robots=False, max_retries=2)


class Accepting(Spider):
    accept: Iterable[int] = frozenset({404, 429, 500})

    def parse(self, page: Page) -> Iterator[Any]:
        yield {"url": page.url, "status": page.status}


def leased(task: Task | None = None, lent: Lent | None = None) -> Lease:
    task = task or Task(url=URL)
    task.site = "shop.example"
    return Lease(b"12345678", "token", task, lent=lent, robots_at=1.0)


async def visit(spider: Spider, site: OneAnswer, lease: Lease | None = None) -> Report:
    return await page_visitor(spider, site, RULES, keeps_raw=True).visit(lease or leased(), inf)


# Statuses


async def test_a_status_that_the_spider_accepts_is_read() -> None:
    report = await visit(Accepting(), OneAnswer(404))

    assert report.outcome.verdict is Verdict.DONE
    assert [item.data for item in report.items] == [b'{"url":"%s","status":404}' % URL.encode()]
    assert report.page is not None
    assert (report.page.status, report.raw is not None) == (404, True)


async def test_a_status_that_nobody_accepts_is_judged_as_ever() -> None:
    assert (await visit(Accepting(), OneAnswer(410))).outcome.verdict is Verdict.DROPPED
    assert (await visit(Accepting(), OneAnswer(403))).outcome.verdict is Verdict.DEAD


async def test_a_task_accepts_for_itself() -> None:
    class Plain(Accepting):
        accept = ()

    report = await visit(Plain(), OneAnswer(403), leased(Task(url=URL, accept=(403,))))

    assert (report.outcome.verdict, report.outcome.items) == (Verdict.DONE, 1)
    assert (report.outcome.fault, report.outcome.blocked) == (False, 0)


async def test_an_accepted_error_is_no_fault_of_its_host() -> None:
    outcome = (await visit(Accepting(), OneAnswer(500))).outcome

    assert (outcome.verdict, outcome.fault, outcome.pushback) == (Verdict.DONE, False, None)


async def test_a_host_that_asks_for_less_is_heard_though_the_spider_accepts_it() -> None:
    outcome = (await visit(Accepting(), OneAnswer(429, Retry_After="7"))).outcome

    assert (outcome.verdict, outcome.fault, outcome.blocked) == (Verdict.DONE, True, True)
    assert outcome.pushback is not None
    assert outcome.pushback.retry_after_s == 7.0


async def test_an_accepted_redirect_is_not_followed() -> None:
    lease = leased(Task(url=URL, accept=(302,)))
    report = await visit(Accepting(), OneAnswer(302, Location="/login"), lease)

    assert (report.outcome.items, report.outcome.follow_ups) == (1, [])


async def test_what_all_pages_have_is_not_expected_of_other_statuses() -> None:
    class Expecting(Accepting):
        expect = "h2"

    assert (await visit(Expecting(), OneAnswer(404))).outcome.items == 1
    assert (await visit(Expecting(), OneAnswer(200))).outcome.kind is FailureKind.BLOCKED


@pytest.mark.parametrize("lent", [None, Lent("dc-1", pool="dc")])
async def test_a_guard_that_says_so_is_one_whatever_is_accepted(lent: Lent | None) -> None:
    task = Task(url=URL, accept=(403,), proxy_pool="dc" if lent else None)
    marked = await visit(Accepting(), OneAnswer(403, cf_mitigated="challenge"), leased(task, lent))
    plain = await visit(Accepting(), OneAnswer(403), leased(task, lent))

    assert (marked.outcome.kind, marked.outcome.items) == (FailureKind.BLOCKED, 0)
    assert plain.outcome.verdict is Verdict.DONE


async def test_an_accepted_page_past_the_end_ends_its_catalogue() -> None:
    class Listed(Accepting):
        catalogue = Catalogue("https://shop.example/all?page={page}", items="li")

    (first,) = [task async for task in seeds(Listed())]
    note = {**first.meta[KEY], "page": 4, "issued": 2}
    url = "https://shop.example/all?page=4"
    page = Task(url=url, meta={KEY: note})
    report = await visit(Listed(), OneAnswer(404), leased(page))

    assert report.outcome.items == 1
    assert [entry.task.url[-1] for entry in report.outcome.follow_ups] == ["3", "5"]


@pytest.mark.parametrize("wrong", [404, "404", {200}, {404.0}, {True}, [99]])
def test_what_is_no_list_of_statuses_is_said_at_once(wrong: Any) -> None:
    with pytest.raises(ConfigError, match=r"Wrong\.accept"):
        type("Wrong", (Spider,), {"accept": wrong})


# Retry and Drop


class Asking(Spider):
    def __init__(self, error: Exception) -> None:
        self.error = error

    def parse(self, page: Page) -> Iterator[Any]:
        yield {"never": "kept"}
        raise self.error


async def test_retry_is_a_try_that_failed_and_waits_as_long_as_it_says() -> None:
    report = await visit(Asking(Retry("busy", after="30s")), OneAnswer(200))
    outcome = report.outcome

    assert (outcome.verdict, outcome.kind) == (Verdict.RETRY, FailureKind.HANDLER)
    assert outcome.reason == "the spider asks for another try: busy"
    assert outcome.retry_in_s == 30.0
    assert (outcome.ours, outcome.fault, outcome.detail) == (True, False, "")
    assert report.items == []


async def test_retry_without_a_time_backs_off() -> None:
    task = Task(url=URL, retry_count=1)
    outcome = (await visit(Asking(Retry()), OneAnswer(200), leased(task))).outcome

    assert outcome.reason == "the spider asks for another try"
    assert 1.0 <= outcome.retry_in_s <= 2.0


@pytest.mark.parametrize(("own_limit", "tries"), [(None, 2), (0, 0), (5, 5)])
async def test_a_task_that_is_asked_for_too_often_is_dead(
    own_limit: int | None, tries: int
) -> None:
    task = Task(url=URL, retry_count=tries, max_retries=own_limit)
    outcome = (await visit(Asking(Retry("busy")), OneAnswer(200), leased(task))).outcome

    assert (outcome.verdict, outcome.kind) == (Verdict.DEAD, FailureKind.HANDLER)


async def test_drop_keeps_the_reason_and_nothing_else() -> None:
    report = await visit(Asking(Drop("sold\nout")), OneAnswer(200))

    assert report.outcome.verdict is Verdict.DROPPED
    assert report.outcome.reason == "the spider drops it: sold out"
    assert (report.items, report.raw is not None) == ([], True)


@pytest.mark.parametrize("wrong", ["soon", "", -1, inf, True, None])
def test_no_time_to_wait(wrong: Any) -> None:
    if wrong is None:
        assert Retry(after=None).after_s is None
    else:
        with pytest.raises((ConfigError, ValueError)):
            Retry(after=wrong)


# Hooks


class Signing(Accepting):
    error: Exception | None = None

    def request(self, request: Outgoing) -> None:
        request.url += "?signed"
        if self.error is not None:
            raise self.error


async def test_a_hook_changes_what_is_sent_and_nothing_that_is_kept() -> None:
    site, lease = OneAnswer(200), leased()
    report = await visit(Signing(), site, lease)

    assert [task.url for task in site.asked] == [f"{URL}?signed"]
    assert report.page is not None
    assert report.raw is not None
    assert {report.page.url, report.items[0].url, report.raw.task.url, lease.task.url} == {URL}


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (KeyError("key"), Verdict.DEAD),
        (FetchError("not the fetcher's"), Verdict.DEAD),
        (Retry("no token yet", after=5), Verdict.RETRY),
        (Drop("not today"), Verdict.DROPPED),
    ],
)
async def test_what_a_hook_raises_is_the_failure_of_its_task(
    error: Exception, verdict: Verdict
) -> None:
    spider, site = Signing(), OneAnswer(200)
    spider.error = error
    report = await visit(spider, site)
    outcome = report.outcome

    assert (outcome.verdict, outcome.sent, site.asked) == (verdict, False, [])
    assert report.page is not None
    assert report.page.error == outcome.reason != ""
    assert bool(outcome.detail) is (verdict is Verdict.DEAD)


# Its time


async def test_what_is_not_due_is_put_off_and_nothing_is_sent() -> None:
    site, due = OneAnswer(200), datetime.now(UTC) + timedelta(hours=1)
    lease = leased(Task(url=URL, not_before=due))
    lease.clock_s = datetime.now(UTC).timestamp() - lease.now()
    outcome = (await visit(Accepting(), site, lease)).outcome

    assert (outcome.verdict, outcome.sent, site.asked) == (Verdict.RETURNED, False, [])
    assert 3_590 < outcome.retry_in_s <= 3_600


@pytest.mark.parametrize("due", [datetime(1, 1, 1, tzinfo=UTC), datetime(2020, 1, 1)])
async def test_what_is_due_is_sent(due: datetime) -> None:
    lease = leased(Task(url=URL, not_before=due))
    lease.clock_s = datetime.now(UTC).timestamp() - lease.now()

    assert (await visit(Accepting(), OneAnswer(200), lease)).outcome.verdict is Verdict.DONE
