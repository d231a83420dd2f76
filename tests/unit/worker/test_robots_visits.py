"""robots.txt on the way to a page: who fetches it, where it is looked for, what it forbids."""

from __future__ import annotations

from math import inf

import pytest
from multidict import CIMultiDict

from shoal.config import Rules
from shoal.core.records import Robots
from shoal.core.task import Task
from shoal.errors import FetchError, OwnFault, Refused, TooLate
from shoal.fetch.port import Fetcher, Request, Response
from shoal.fetch.robots import MAX_HOPS, TTL_S, RobotsGate
from shoal.frontier.admission import Admission
from shoal.frontier.values import Lease, Outcome, Verdict
from shoal.worker.visits.outcomes import Judge
from shoal.worker.visits.robots_visits import RobotsVisits

SITE = "https://shop.example"
MOVED_TO = f"{SITE}/moved.txt"


class Server(Fetcher):
    """Answers all requests in the same way."""

    def __init__(self, answer: Response | FetchError) -> None:
        self._answer = answer
        self.asked: list[str] = []

    async def fetch(self, request: Request) -> Response:
        self.asked.append(request.task.url)
        if isinstance(self._answer, FetchError):
            raise self._answer
        return self._answer

    async def close(self) -> None:
        return


def answer(status: int = 200, body: bytes = b"", **headers: str) -> Response:
    return Response(f"{SITE}/robots.txt", status, CIMultiDict(headers), body, 0.1)


def visits(server: Fetcher, known: Robots | None = None) -> RobotsVisits:
    async def known_robots(site: str) -> Robots | None:
        assert site == "shop.example"
        return known

    rules = Rules()
    return RobotsVisits(server, RobotsGate("me"), known_robots, Judge(rules, Admission(rules)))


def lease(path: str = "/p/1") -> Lease:
    return Lease(b"12345678", "token", Admission(Rules()).admit(Task(url=SITE + path)).task)


async def learned(server: Fetcher, known: Robots | None = None) -> Outcome:
    report = await visits(server, known).learn(lease(), inf)
    assert report.page is None
    return report.outcome


async def refused(known: Robots | None, path: str = "/p/1") -> Outcome | None:
    server = Server(OwnFault("nobody asks"))
    report = await visits(server, known).refusal(lease(path), 1.0)
    assert server.asked == []
    return report.outcome if report else None


async def test_the_permission_of_a_page_goes_to_its_robots_txt() -> None:
    server = Server(answer(body=b"User-agent: *\nDisallow: /private"))
    outcome = await learned(server)
    assert server.asked == [f"{SITE}/robots.txt"]
    assert (outcome.verdict, outcome.sent) == (Verdict.RETURNED, True)
    assert outcome.robots == Robots("User-agent: *\nDisallow: /private", TTL_S)


@pytest.mark.parametrize("error", [OwnFault("no sockets"), TooLate("too late")])
async def test_what_could_not_be_sent_teaches_nothing(error: FetchError) -> None:
    outcome = await learned(Server(error))
    assert (outcome.verdict, outcome.sent, outcome.robots) == (Verdict.RETURNED, False, None)


async def test_a_host_that_our_guard_refuses_is_never_visited() -> None:
    outcome = await learned(Server(Refused("a private address")))
    assert (outcome.verdict, outcome.sent) == (Verdict.DEAD, False)
    assert outcome.reason == "a private address"


async def test_a_robots_txt_that_cannot_be_had_closes_the_host() -> None:
    outcome = await learned(Server(FetchError("connection reset")))
    assert outcome.robots is not None
    assert outcome.robots.error == "robots.txt: connection reset"


async def test_where_it_was_moved_on_its_host_the_next_lease_looks() -> None:
    outcome = await learned(Server(answer(301, Location="/moved.txt")))
    assert outcome.robots == Robots("", 0.0, location=MOVED_TO, hops=1)
    server = Server(answer(body=b"User-agent: *"))
    outcome = await learned(server, outcome.robots)
    assert server.asked == [MOVED_TO]
    assert outcome.robots == Robots("User-agent: *", TTL_S)


@pytest.mark.parametrize(
    ("location", "hops"), [("https://www.shop.example/robots.txt", 0), ("/moved.txt", MAX_HOPS)]
)
async def test_other_hosts_and_further_moves_count_as_none(location: str, hops: int) -> None:
    known = Robots("", 0.0, location=MOVED_TO, hops=hops)
    outcome = await learned(Server(answer(301, Location=location)), known)
    assert outcome.robots == Robots("", TTL_S)


async def test_what_it_forbids_is_dropped() -> None:
    known = Robots("User-agent: *\nDisallow: /private", TTL_S)
    assert await refused(known) is None
    outcome = await refused(known, "/private/1")
    assert outcome is not None
    assert (outcome.verdict, outcome.reason) == (Verdict.DROPPED, "robots.txt forbids it")
    assert not outcome.sent


async def test_while_it_cannot_be_had_pages_are_tried_later() -> None:
    outcome = await refused(Robots("", 60.0, error="robots.txt: HTTP 503"))
    assert outcome is not None
    assert (outcome.verdict, outcome.reason) == (Verdict.RETRY, "robots.txt: HTTP 503")
    assert (outcome.sent, outcome.fault) == (False, False)


async def test_a_crawl_that_was_started_over_knows_none_any_more() -> None:
    outcome = await refused(None)
    assert outcome is not None
    assert (outcome.verdict, outcome.sent) == (Verdict.RETURNED, False)
