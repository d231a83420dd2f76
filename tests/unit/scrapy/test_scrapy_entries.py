"""Which task a request is. That decides what is fetched once, and what twice."""

from __future__ import annotations

from typing import cast

import pytest
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.utils.request import RequestFingerprinter

from shoal.core.task import Task
from shoal.frontier.values import Lease
from shoal.scrapy.wire.requests import Requests
from shoal.scrapy.wire.tagged import Unserialisable
from shoal.scrapy.worker.entries import Entries
from shoal.scrapy.worker.verdicts import Life
from shoal.worker.visits.known_links import Recent

URL = "https://shop.example/p/1"


class Engine:
    """As far as it is asked whether start() has ended."""

    def __init__(self, *, starting: bool) -> None:
        self._start = object() if starting else None


class FakeCrawler:
    def __init__(self, *, starting: bool) -> None:
        self.engine = Engine(starting=starting)


def entries(*, starting: bool = False, known: Recent[bytes] | None = None) -> Entries:
    requests = Requests(Spider("shop"), RequestFingerprinter(), None)
    crawler = cast(Crawler, FakeCrawler(starting=starting))
    return Entries(crawler, requests, known or Recent())


def identity(made: Entries, request: Request, parent: Life | None = None) -> bytes:
    entry = made.entry_for(request, parent)
    assert entry is not None
    return entry.fingerprint


@pytest.fixture
def parent() -> Life:
    return Life(lease=Lease(b"12345678", "token", Task(url="https://shop.example/")))


def test_one_address_is_one_task_however_it_is_spelt() -> None:
    made = entries()
    assert identity(made, Request(f"{URL}?b=1&a=2")) == identity(made, Request(f"{URL}?a=2&b=1"))
    assert identity(made, Request(URL)) != identity(made, Request(URL, method="POST"))


def test_a_follow_up_knows_where_it_was_found(parent: Life) -> None:
    entry = entries().entry_for(Request(URL), parent)
    assert entry is not None
    assert entry.task.parent == b"12345678".hex()


def test_what_the_frontier_surely_has_is_a_duplicate(parent: Life) -> None:
    known = Recent[bytes]()
    known.update([identity(entries(), Request(URL))])
    made = entries(known=known)
    assert made.entry_for(Request(URL), parent) is None
    assert parent.duplicates == 1
    assert made.entry_for(Request(URL, dont_filter=True), parent) is not None


def test_dont_filter_is_a_task_of_its_own_each_time(parent: Life) -> None:
    made = entries()
    twice = [identity(made, Request(URL, dont_filter=True), parent) for _ in range(2)]
    assert len({*twice, identity(made, Request(URL))}) == 3


def test_start_requests_are_the_same_in_every_process() -> None:
    first, second = entries(starting=True), entries(starting=True)
    request = Request(URL, dont_filter=True)
    of_first = [identity(first, request) for _ in range(3)]
    assert of_first == [identity(second, request) for _ in range(3)]
    assert len(set(of_first)) == 3
    assert of_first[0] == identity(first, Request(URL))


def test_what_a_feed_brings_twice_is_one_task() -> None:
    made, request = entries(), Request(URL, dont_filter=True)
    once = made.entries_from([request, request], "message 1")
    assert [e.fingerprint for e in once] == [
        e.fingerprint for e in made.entries_from([request, request], "message 1")
    ]
    other = made.entries_from([request], "message 2")
    assert len({e.fingerprint for e in (*once, *other)}) == 3


def test_a_feed_brings_plain_requests_under_their_own_name() -> None:
    made = entries()
    (entry,) = made.entries_from([Request(URL)], "message 1")
    assert entry.fingerprint == identity(made, Request(URL))


def test_what_cannot_be_stored_is_an_error_that_names_it(parent: Life) -> None:
    with pytest.raises(Unserialisable, match=r"meta\['page'\]"):
        entries().entry_for(Request(URL, meta={"page": object()}), parent)
