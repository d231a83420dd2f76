"""Visits to sitemaps: how they end where they are not like pages."""

from __future__ import annotations

from math import inf

import pytest
from multidict import CIMultiDict

from shoal.config import Rules
from shoal.core.task import Task
from shoal.errors import FetchError, TooLarge
from shoal.fetch.port import Fetcher, Request, Response
from shoal.frontier.admission import Admission
from shoal.frontier.values import Entry, Lease, Outcome, Verdict
from shoal.seeds.sitemap_tasks import SITEMAP, SitemapNote, is_large, is_robots, sitemap_task
from shoal.worker.visits.sitemap_visits import SitemapJudge, SitemapReader
from shoal.worker.visits.visitor import Visitor
from support.sitemaps import urlset

RULES = Rules(robots=False)
ADMISSION = Admission(RULES)
OLD, NEW = "https://a.example/old.xml", "https://a.example/new.xml"


class Answering(Fetcher):
    """Gives the same answer to all."""

    def __init__(self, answer: Response | FetchError) -> None:
        self._answer = answer

    async def fetch(self, request: Request) -> Response:
        if isinstance(self._answer, FetchError):
            raise self._answer
        return self._answer

    async def close(self) -> None:
        return


def moved(to: str) -> Response:
    return Response("", 301, CIMultiDict(Location=to), b"", 0.1)


async def outcome_of(entry: Entry, answer: Response | FetchError) -> Outcome:
    reader, judge = SitemapReader(ADMISSION), SitemapJudge(RULES, ADMISSION)
    visitor = Visitor("worker", Answering(answer), reader, judge)
    lease = Lease(entry.fingerprint, "token", entry.task, robots_at=0.0)
    return (await visitor.visit(lease, inf)).outcome


def named(url: str, reading: str = "one") -> Entry:
    return ADMISSION.admit(sitemap_task(url, SitemapNote(reading)))


@pytest.mark.parametrize("reading", ["one", "two"])
async def test_the_target_of_a_redirect_is_who_it_would_be_by_itself(reading: str) -> None:
    outcome = await outcome_of(named(OLD, reading), moved(NEW))
    (target,) = outcome.follow_ups
    assert target.fingerprint == named(NEW, reading).fingerprint
    assert (target.task.url, target.task.redirects) == (NEW, [OLD])
    assert (outcome.verdict, outcome.reason) == (Verdict.DONE, f"HTTP 301 to {NEW}")


async def test_redirects_in_a_loop_end() -> None:
    (target,) = (await outcome_of(named(OLD), moved(NEW))).follow_ups
    outcome = await outcome_of(target, moved(OLD))
    assert (outcome.verdict, outcome.follow_ups) == (Verdict.DEAD, [])


async def test_a_home_page_that_all_is_redirected_to_is_a_robots_txt_and_a_sitemap() -> None:
    home = "https://a.example/"
    (of_robots,) = (await outcome_of(named(home), moved(home))).follow_ups
    (of_sitemap,) = (await outcome_of(named(OLD), moved(home))).follow_ups
    assert of_robots.fingerprint != of_sitemap.fingerprint
    assert [is_robots(entry.task) for entry in (of_robots, of_sitemap)] == [True, False]


@pytest.mark.parametrize("dont_filter", [False, True])
async def test_of_somebody_elses_task_the_target_is_as_that_of_a_page(dont_filter: bool) -> None:
    theirs = ADMISSION.admit(Task(url=OLD, job_type=SITEMAP, dont_filter=dont_filter))
    (one,) = (await outcome_of(theirs, moved(NEW))).follow_ups
    (other,) = (await outcome_of(theirs, moved(NEW))).follow_ups
    assert (one.fingerprint != other.fingerprint) == dont_filter


async def test_what_was_read_of_one_that_is_too_large_is_counted() -> None:
    error = TooLarge("too large")
    error.wire_bytes = 5000
    assert (await outcome_of(named(OLD), error)).wire_bytes == 5000


async def test_one_that_is_larger_than_a_page_is_asked_for_again() -> None:
    outcome = await outcome_of(named(OLD), TooLarge("too large"))
    (again,) = outcome.follow_ups
    assert (outcome.verdict, again.task.url) == (Verdict.DONE, OLD)
    assert is_large(again.task)
    assert again.fingerprint != named(OLD).fingerprint
    assert (await outcome_of(named(OLD), TooLarge("too large"))).follow_ups == [again]
    outcome = await outcome_of(again, TooLarge("too large"))
    assert (outcome.verdict, outcome.reason, outcome.fault) == (Verdict.DEAD, "too large", False)


async def test_what_cannot_be_read_is_no_failure_of_the_host() -> None:
    cut_off = urlset("https://a.example/1", "ftp://a.example/2")[:-5]
    outcome = await outcome_of(named(OLD), Response("", 200, CIMultiDict(), cut_off, 0.1))
    assert (outcome.verdict, outcome.ours, outcome.fault) == (Verdict.DEAD, True, False)
    assert (len(outcome.follow_ups), outcome.filtered) == (1, 1)
