"""What may be asked conditionally, what a 304 leaves, and when items are gone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any, cast

import pytest
from multidict import CIMultiDict
from rich.console import Console
from rich.table import Table

from contract.results_suite import some_fingerprint, some_item, some_page
from shoal.cli.display import summary_table
from shoal.cli.status_view import status_table
from shoal.config import Rules
from shoal.core.files import FILE
from shoal.core.task import Task
from shoal.errors import ConfigError, StorageBusy, StorageFailed
from shoal.fetch.port import Fetcher, Request, Response
from shoal.fleet.summary import Summary
from shoal.frontier.port import Queries
from shoal.frontier.values import CrawlState, Lease, Record, Stats, TaskState, Verdict
from shoal.results.port import Batch, KnownPage, Results
from shoal.results.sqlite.store import SqliteResults
from shoal.spider.catalogue import KEY
from shoal.spider.spider import Spider
from shoal.worker.report import Report
from shoal.worker.visits.recrawl import (
    MOST_DEAD,
    Earlier,
    check_previous,
    conditional,
    earlier_for,
    is_plain,
    mark_gone_items,
    may_ask,
    validator,
    why_not_full,
)
from support.until import in_time, until
from support.visitors import page_visitor

URL = "https://shop.example/1"
PAGE = some_fingerprint(1)


@pytest.fixture
async def results(tmp_path: Path) -> AsyncIterator[SqliteResults]:
    store = SqliteResults(tmp_path / "shoal.db")
    yield store
    await store.close()


# What may be asked


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ('"abc"', '"abc"'),
        ('W/"a b"', 'W/"a b"'),
        ("x" * 500, "x" * 500),
        ("x" * 501, ""),
        ('"a\r\nSet-Cookie: b"', ""),
        ('"\x00"', ""),
        ('"é"', ""),
        ('"\udcff"', ""),
        ("", ""),
        (None, ""),
    ],
)
def test_what_a_server_says_is_kept_where_it_can_be_sent_back(text: str | None, kept: str) -> None:
    assert validator(text) == kept


@pytest.mark.parametrize(
    ("changes", "plain"),
    [
        ({}, True),
        ({"headers": {"Cookie": "a=b"}, "meta": {"page": 1}}, True),
        ({"headers": {"IF-None-Match": '"mine"'}}, False),
        ({"headers": {"if-modified-since": "then"}}, False),
        ({"headers": {"Range": "bytes=0-5"}}, False),
        ({"method": "POST"}, False),
        ({"method": "HEAD"}, False),
        ({"body": "x"}, False),
        ({"meta": {KEY: {"index": 0, "page": 2}}}, False),
    ],
)
def test_tasks_that_want_more_than_the_page(changes: dict[str, Any], plain: bool) -> None:
    assert is_plain(Task(url=URL, **changes)) is plain


@pytest.mark.parametrize(
    ("known", "may"),
    [
        (KnownPage(etag='"1"'), True),
        (KnownPage(last_modified="then"), True),
        (KnownPage(etag='"1"', read=1, items=[some_item()]), True),
        (KnownPage(), False),
        (KnownPage(etag="\n"), False),
        (KnownPage(etag='"1"', links=1), False),
        (KnownPage(etag='"1"', rejected=1), False),
        (KnownPage(etag='"1"', read=2, items=[some_item()]), False),
        (KnownPage(etag='"1"', read=0, items=[some_item()]), False),
    ],
    ids=str,
)
def test_pages_of_which_all_is_known(known: KnownPage, may: bool) -> None:
    assert may_ask(known) is may


def test_conditions_go_with_the_request_and_not_with_the_task() -> None:
    task = Task(url=URL, headers={"Cookie": "a=b"})
    request = conditional(task, KnownPage(etag='W/"1"', last_modified="then"))
    assert request.headers == {
        "Cookie": "a=b",
        "If-None-Match": 'W/"1"',
        "If-Modified-Since": "then",
    }
    assert task.headers == {"Cookie": "a=b"}
    assert "If-None-Match" not in conditional(task, KnownPage(last_modified="then")).headers


class Asked(SqliteResults):
    """A store that notes what it is asked. It raises its errors first, one a question."""

    def __init__(self, path: Path, *errors: Exception) -> None:
        super().__init__(path)
        self._errors = list(errors)
        self.questions: list[int] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def known_pages(
        self, crawl: str, fingerprints: Sequence[bytes]
    ) -> dict[bytes, KnownPage]:
        self.questions.append(len(fingerprints))
        await in_time("the test to let it answer", self.may_answer.wait())
        if self._errors:
            raise self._errors.pop(0)
        return {f: KnownPage(etag=f.hex()) for f in fingerprints if f != some_fingerprint(0)}


@pytest.mark.parametrize(
    ("error", "etag"), [(StorageBusy("away"), PAGE.hex()), (StorageFailed("broken"), None)]
)
async def test_a_store_that_is_away_is_waited_for(
    tmp_path: Path, error: Exception, etag: str | None
) -> None:
    """One that is broken is met again when the page is saved: until then it is in nobody's way."""
    store = Asked(tmp_path / "shoal.db", error)
    known = await Earlier(store, "monday").page(lease())
    assert (known.etag if known else None) == etag
    await store.close()


async def test_those_who_wait_are_asked_for_together(tmp_path: Path) -> None:
    """Even if the one whose turn it is is cancelled."""
    store = Asked(tmp_path / "shoal.db")
    store.may_answer.clear()
    earlier = Earlier(store, "monday")
    visits = [asyncio.create_task(earlier.page(lease_of(n))) for n in range(20)]
    await until("a question", lambda: store.questions)
    visits[0].cancel()
    visits[5].cancel()
    store.may_answer.set()
    found = await in_time("all visits", asyncio.gather(*visits, return_exceptions=True))
    assert store.questions[0] == 1
    assert sum(store.questions[1:]) == 18
    assert len(store.questions) == 2
    for number, known in enumerate(found):
        if number in (0, 5):
            assert isinstance(known, asyncio.CancelledError)
        else:
            assert isinstance(known, KnownPage)
            assert known.etag == some_fingerprint(number).hex()
    assert await earlier.page(lease_of(0)) is None
    assert not earlier._found
    assert not earlier._wanted
    await store.close()


class OnlyPasses(SqliteResults):
    """Results that cannot be read."""

    readable = False


async def test_results_that_only_pass_through_know_no_earlier_crawl(tmp_path: Path) -> None:
    store, rules = OnlyPasses(tmp_path / "shoal.db"), Rules(previous="monday")
    with pytest.raises(ConfigError, match="only pass through"):
        await check_previous(store, "tuesday", rules)
    with pytest.raises(ConfigError, match="only pass through"):
        earlier_for(rules, store)
    assert earlier_for(Rules(), store) is None
    await check_previous(store, "tuesday", Rules())
    await store.close()


# What a 304 leaves


class Answering(Fetcher):
    """Answers all requests in the same way."""

    def __init__(self, status: int, headers: Mapping[str, str]) -> None:
        self._response = Response(URL, status, CIMultiDict(headers), b"", 0.25)
        self.asked: list[Task] = []

    async def fetch(self, request: Request) -> Response:
        self.asked.append(request.task)
        return self._response

    async def close(self) -> None:
        return


def lease(**changes: Any) -> Lease:
    return Lease(PAGE, "token", Task(url=URL, **changes), robots_at=0.0)


def lease_of(number: int) -> Lease:
    return Lease(some_fingerprint(number), "token", Task(url=URL), robots_at=0.0)


async def visited(fetcher: Fetcher, results: Results, **changes: Any) -> Report:
    """Visit the page in a crawl that follows on Monday's."""
    earlier = Earlier(results, "monday")
    visitor = page_visitor(Spider(), fetcher, Rules(robots=False), earlier=earlier)
    return await visitor.visit(lease(**changes), inf)


async def read_on_monday(results: Results, **changes: Any) -> None:
    values = {"etag": '"1"', "last_modified": "then", "digest": b"d", "simhash": 5} | changes
    page = some_page(status=200, items=1, **values)
    await results.save("monday", Batch([page], [some_item(url="canonical")]))


async def test_an_unchanged_page_gives_its_items_again(results: SqliteResults) -> None:
    await read_on_monday(results)
    fetcher = Answering(304, {"etag": 'W/"1"'})
    before = time.monotonic()  # By the clock of a lease that was told no other time.
    report = await visited(fetcher, results, retry_count=2)
    assert fetcher.asked[0].headers == {"If-None-Match": '"1"', "If-Modified-Since": "then"}
    outcome = report.outcome
    assert (outcome.verdict, outcome.unchanged, outcome.items) == (Verdict.DONE, True, 1)
    assert outcome.latency_s == 0.25
    assert outcome.lease.task.headers == {}
    (item,) = report.items
    assert (item.key, item.url, item.data) == ("k1", "canonical", some_item().data)
    assert item.scraped_at >= before
    assert report.page is not None
    assert (report.page.status, report.page.attempt, report.page.items) == (304, 3, 1)
    assert (report.page.etag, report.page.last_modified) == ('W/"1"', "then")
    assert (report.page.digest, report.page.simhash) == (b"d", 5)


@pytest.mark.parametrize(
    ("known", "task"),
    [({"links": 1}, {}), ({}, {"headers": {"if-none-match": "mine"}}), ({"verdict": "dead"}, {})],
    ids=["it led on", "the spider asks by itself", "it failed"],
)
async def test_a_304_to_somebody_elses_question_is_no_page(
    results: SqliteResults, known: dict[str, Any], task: dict[str, Any]
) -> None:
    await read_on_monday(results, **known)
    fetcher = Answering(304, {})
    outcome = (await visited(fetcher, results, **task)).outcome
    assert fetcher.asked[0].headers == task.get("headers", {})
    assert (outcome.verdict, outcome.reason) == (Verdict.DEAD, "HTTP 304")
    assert not outcome.unchanged


async def test_a_page_that_is_gone_is_dropped(results: SqliteResults) -> None:
    await read_on_monday(results)
    report = await visited(Answering(404, {}), results)
    assert (report.outcome.verdict, report.items) == (Verdict.DROPPED, [])


# What is gone


def stats(**changes: Any) -> Stats:
    values: dict[str, Any] = {
        "crawl": "tuesday",
        "state": CrawlState.FINISHED,
        "rules": Rules(previous="monday"),
        "created_at": 1.0,
        "finished_at": 9.0,
        "done": 7,
    }
    return Stats(**(values | changes))


async def marked_gone(
    results: SqliteResults, ended: Stats, dead: Sequence[str] = ("parse",)
) -> int:
    """How many items are gone after a crawl in which tasks for these handlers have died."""
    records = [
        Record(fingerprint=PAGE, task=Task(url=URL, job_type=name), state=TaskState.DEAD)
        for name in dead
    ]

    class Frontier:
        async def dead(self, crawl: str, limit: int) -> list[Record]:
            return records[:limit]

    return await mark_gone_items(results, cast(Queries, Frontier()), ended)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"dropped": 5, "rejected": 5, "retries": 5}, None),
        ({"done": 0, "dropped": 1}, "no page was read"),
        ({"dead": 3}, "3 tasks are dead"),
        ({"dead": 1}, "1 task is dead"),
        ({"waiting": 1200, "delayed": 34}, "1,234 URLs were left out (max_pages)"),
        ({"bloom": True}, "known URLs are in a Bloom filter, which may have hidden new ones"),
        ({"state": CrawlState.CANCELLED}, "the crawl is cancelled"),
        ({"state": CrawlState.RUNNING, "waiting": 1}, "the crawl is running"),
    ],
)
async def test_items_are_gone_only_after_a_full_crawl(
    results: SqliteResults, changes: dict[str, Any], reason: str | None
) -> None:
    assert why_not_full(stats(**changes)) == reason
    await results.save("monday", Batch(items=[some_item()]))
    assert await marked_gone(results, stats(**changes)) == (0 if reason else 1)


@pytest.mark.parametrize(
    ("handlers", "gone"), [([FILE, FILE], 1), ([FILE, "parse"], 0), ([FILE] * (MOST_DEAD + 1), 0)]
)
async def test_behind_a_file_that_is_dead_is_nothing(
    results: SqliteResults, handlers: list[str], gone: int
) -> None:
    await results.save("monday", Batch(items=[some_item()]))
    assert await marked_gone(results, stats(dead=len(handlers)), handlers) == gone


async def test_without_an_earlier_crawl_nothing_is_gone(results: SqliteResults) -> None:
    assert await marked_gone(results, stats(rules=Rules())) == 0


def text_of(table: Table) -> str:
    console = Console(width=120)
    with console.capture() as shown:
        console.print(table)
    return " ".join(shown.get().replace("│", " ").split())


def test_what_people_see_of_it() -> None:
    again = Summary(stats=stats(unchanged=1200, sent=1300), items={}, gone=3, seconds=1.0)
    shown = text_of(summary_table(again))
    assert "unchanged 1,200 pages not sent again" in shown
    assert "gone 3 items of monday not found any more" in shown
    assert "1,300 sent, 0.0% blocked (403, 429, 503), 1,200 unchanged (304)" in text_of(
        status_table(again.stats, 10.0)
    )
    first = Summary(stats=stats(rules=Rules()), items={}, seconds=1.0)
    for table in (summary_table(first), status_table(first.stats, 10.0)):
        assert "unchanged" not in text_of(table)
        assert "gone" not in text_of(table)
