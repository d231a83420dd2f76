"""Visits whose answer is a block: no handler sees it. What the spider says of it counts."""

from __future__ import annotations

from math import inf

import pytest
from multidict import CIMultiDict

from shoal.config import Rules
from shoal.core.exits import Blame, Lent, Passage
from shoal.core.task import Task
from shoal.errors import ConfigError, ExitFault, FetchError
from shoal.fetch.port import Fetcher, Request, Response, Route
from shoal.fetch.robots import RobotsGate
from shoal.frontier.admission import Admission
from shoal.frontier.values import Lease, Outcome, Verdict
from shoal.spider.page import Page
from shoal.spider.spider import Spider
from shoal.worker.report import Report
from shoal.worker.visits.known_links import KnownUrls
from shoal.worker.visits.outcomes import Judge
from shoal.worker.visits.page_reader import PageReader
from shoal.worker.visits.robots_visits import RobotsVisits
from shoal.worker.visits.visitor import Visitor
from support.visitors import unknown

URL = "https://shop.example/lamp"
RULES = Rules(robots=False, pools=("dc",), proxy_pool="dc")
LENT = Lent("dc-1", pool="dc")
ROUTE = Route("dc-1", allows_direct=True)
PAGE = b"<h1 class=title>Lamp</h1>" + b"<p>Oak.</p>" * 2_000
CAPTCHA = b"<p>Show that you are human</p><div class=captcha></div>"


class Site(Fetcher):
    """Answers with what it was told."""

    def __init__(self, answer: Response | FetchError) -> None:
        self._answer = answer
        self.asked: list[Request] = []

    async def fetch(self, request: Request) -> Response:
        self.asked.append(request)
        if isinstance(self._answer, FetchError):
            raise self._answer
        return self._answer

    async def close(self) -> None:
        return


class Reading(Spider):
    """Notes what its handler gets."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def parse(self, page: Page) -> list[Task]:
        self.read.append(page.url)
        return []


class Expecting(Reading):
    expect = "h1.title"


class Deciding(Reading):
    says: str | bool | None = None

    def blocked(self, page: Page) -> str | bool | None:
        return self.says


def answer(status: int = 200, body: bytes = PAGE, **headers: str) -> Response:
    named = CIMultiDict({"Content-Type": "text/html"})
    named.update({name.replace("_", "-"): value for name, value in headers.items()})
    return Response(URL, status, named, body, 0.1)


def route(lent: Lent, pool: str | None) -> Route | None:
    return ROUTE if lent.exit == "dc-1" else None


def visitor(spider: Spider, fetcher: Fetcher, rules: Rules = RULES) -> Visitor:
    admission = Admission(rules)
    judge = Judge(rules, admission)
    reader = PageReader(spider, rules, admission, KnownUrls(), keeps_raw=True)
    return Visitor("worker", fetcher, reader, judge, routes=route)


def leased(lent: Lent | None = LENT) -> Lease:
    task = Task(url=URL, site="shop.example", proxy_pool="dc" if lent else None)
    return Lease(b"12345678", "token", task, lent=lent)


async def visited(
    spider: Reading, response: Response, lent: Lent | None = LENT
) -> tuple[Report, bool]:
    """How a visit ended, and whether a handler got the page."""
    report = await visitor(spider, Site(response)).visit(leased(lent), inf)
    return report, bool(spider.read)


def deciding(says: str | bool | None) -> Deciding:
    spider = Deciding()
    spider.says = says
    return spider


async def test_a_page_by_an_exit_is_good() -> None:
    report, is_read = await visited(Reading(), answer())
    assert is_read
    assert report.outcome.passage == Passage()
    assert report.page is not None
    assert (report.page.exit, report.page.block) == ("dc-1", "")


async def test_no_handler_and_no_archive_gets_a_block() -> None:
    report, is_read = await visited(Reading(), answer(200, CAPTCHA))
    assert not is_read
    assert (report.raw, report.items) == (None, [])
    assert report.outcome.passage is not None
    assert report.outcome.passage.block == "captcha"
    assert report.page is not None
    assert (report.page.exit, report.page.block, report.page.verdict) == (
        "dc-1",
        "captcha",
        "retry",
    )


@pytest.mark.parametrize("body", [CAPTCHA, b""])
async def test_without_an_exit_no_page_is_lost_to_a_guess(body: bytes) -> None:
    report, is_read = await visited(Reading(), answer(200, body), lent=None)
    assert is_read
    assert (report.outcome.verdict, report.outcome.passage) == (Verdict.DONE, None)


async def test_without_an_exit_a_challenge_that_says_so_is_tried_again() -> None:
    report, is_read = await visited(Reading(), answer(cf_mitigated="challenge"), lent=None)
    assert not is_read
    assert (report.outcome.verdict, report.outcome.blocked) == (Verdict.RETRY, 1)
    assert report.outcome.pushback is not None


async def test_without_an_exit_statuses_mean_what_they_did() -> None:
    report, _ = await visited(Reading(), answer(403, cf_mitigated="challenge"), lent=None)
    assert (report.outcome.verdict, report.outcome.reason) == (Verdict.DEAD, "HTTP 403")
    report, _ = await visited(Reading(), answer(302, b"", Location="/login"), lent=None)
    assert report.outcome.verdict is Verdict.DONE


async def test_what_every_page_has_is_missing_on_a_block() -> None:
    for lent in (LENT, None):
        report, is_read = await visited(Expecting(), answer(200, b"<p>hello</p>"), lent)
        assert not is_read
        assert report.outcome.reason == "HTTP 200, expected h1.title"
        assert report.outcome.verdict is Verdict.RETRY
        report, is_read = await visited(Expecting(), answer(), lent)
        assert is_read


async def test_only_html_can_have_it() -> None:
    _, is_read = await visited(Expecting(), answer(200, b"{}", Content_Type="application/json"))
    assert is_read


@pytest.mark.parametrize("expect", ["h1[", 5, None])
def test_what_is_no_css_is_said_at_once(expect: object) -> None:
    with pytest.raises(ConfigError, match=r"Wrong\.expect: "):
        type("Wrong", (Spider,), {"expect": expect})


@pytest.mark.parametrize(
    ("says", "kind"), [(True, "blocked"), ("sold  out\nof  luck", "sold out of luck")]
)
async def test_a_spider_says_that_a_page_is_a_block(says: str | bool, kind: str) -> None:
    report, is_read = await visited(deciding(says), answer())
    assert not is_read
    assert report.outcome.passage is not None
    assert report.outcome.passage.block == kind


@pytest.mark.parametrize("says", [None, False, ""])
async def test_or_that_it_is_none(says: str | bool | None) -> None:
    _, is_read = await visited(deciding(says), answer())
    assert is_read


async def test_a_spider_knows_better_than_a_guess_and_a_status() -> None:
    _, is_read = await visited(deciding(False), answer(200, CAPTCHA))
    assert is_read
    report, _ = await visited(deciding(False), answer(403, b"members only"))
    assert (report.outcome.verdict, report.outcome.passage) == (Verdict.DEAD, Passage())
    report, is_read = await visited(deciding(None), answer(200, CAPTCHA))
    assert not is_read


async def test_what_blocked_raises_is_the_spiders_fault() -> None:
    class Failing(Reading):
        def blocked(self, page: Page) -> str | bool | None:
            raise ValueError("oh")

    report, is_read = await visited(Failing(), answer())
    assert not is_read
    assert (report.outcome.verdict, report.outcome.reason) == (Verdict.DEAD, "ValueError: oh")


async def test_a_request_leaves_by_the_exit_that_was_lent() -> None:
    site = Site(answer())
    await visitor(Reading(), site).visit(leased(), inf)
    assert [request.route for request in site.asked] == [ROUTE]


@pytest.mark.parametrize("lent", [Lent("dc-2", pool="dc"), Lent("", pool="dc")])
async def test_what_has_no_route_here_is_given_back_unsent(lent: Lent) -> None:
    site = Site(answer())
    report = await visitor(Reading(), site).visit(leased(lent), inf)
    assert site.asked == []
    assert (report.outcome.verdict, report.outcome.sent) == (Verdict.RETURNED, False)
    assert report.outcome.passage is None


async def test_an_exit_that_cannot_be_used_leaves_no_try_in_the_log() -> None:
    site = Site(ExitFault("no way in", Blame.EXIT))
    report = await visitor(Reading(), site).visit(leased(), inf)
    assert (report.page, report.outcome.passage) == (None, Passage(Blame.EXIT))


# robots.txt


async def learned(said: Response | FetchError) -> Outcome:
    rules = Rules(pools=("dc",), proxy_pool="dc")
    judge = Judge(rules, Admission(rules))
    site = Site(said)
    visits = RobotsVisits(site, RobotsGate("me"), unknown, judge, route)
    outcome = (await visits.learn(leased(), inf)).outcome
    (request,) = site.asked
    assert (request.route, request.task.proxy_pool) == (ROUTE, "dc")
    return outcome


async def test_robots_txt_goes_by_the_same_exit() -> None:
    outcome = await learned(answer(200, b"User-agent: *\nDisallow: /x"))
    assert outcome.robots is not None
    assert (outcome.verdict, outcome.passage) == (Verdict.RETURNED, Passage())


@pytest.mark.parametrize(
    ("said", "verdict", "passage"),
    [
        (ExitFault("no", Blame.EXIT), Verdict.RETURNED, Passage(Blame.EXIT)),
        (ExitFault("no", Blame.PAIR), Verdict.RETRY, Passage(Blame.PAIR)),
        (FetchError("no"), Verdict.RETRY, Passage(Blame.PAIR)),
    ],
)
async def test_the_faults_of_an_exit_are_not_the_word_of_the_site(
    said: FetchError, verdict: Verdict, passage: Passage
) -> None:
    outcome = await learned(said)
    assert (outcome.robots, outcome.verdict, outcome.passage) == (None, verdict, passage)


@pytest.mark.parametrize("said", [answer(429), answer(403, cf_mitigated="challenge")])
async def test_nor_is_a_block(said: Response) -> None:
    outcome = await learned(said)
    assert (outcome.robots, outcome.verdict) == (None, Verdict.RETRY)
    assert outcome.passage is not None
    assert outcome.passage.block


async def test_a_site_without_a_robots_txt_may_say_so_with_403() -> None:
    outcome = await learned(answer(403, b""))
    assert outcome.robots is not None
    assert outcome.passage == Passage()
