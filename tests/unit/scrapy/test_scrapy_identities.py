"""Accounts that are lent to a process: their cookies in Scrapy's jars, and the end of a session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf
from typing import Any, cast

import msgspec
import pytest
from scrapy import Request, Spider, version_info
from scrapy.downloadermiddlewares.cookies import CookiesMiddleware
from scrapy.http import HtmlResponse, Response
from scrapy.utils.request import RequestFingerprinter
from twisted.internet.error import TimeoutError as SlowError
from twisted.python.failure import Failure

from shoal.config import Rules
from shoal.core.cookies import EMPTY, Jar, changes
from shoal.core.identities import IdentityReport, LeasedIdentity, LoginChange
from shoal.core.identity_policy import MAX_EXPIRED
from shoal.core.session_config import SessionConfig
from shoal.core.task import Task
from shoal.errors import SessionExpired
from shoal.frontier.admission import Admission
from shoal.frontier.port import Frontier
from shoal.frontier.values import Entry, Lease, Verdict
from shoal.scrapy.wire.cookies import Jars
from shoal.scrapy.wire.requests import Requests
from shoal.scrapy.wire.sessions import Sessions
from shoal.scrapy.worker.account_jars import AccountJars
from shoal.scrapy.worker.identities import Identities
from shoal.scrapy.worker.intake import Intake
from shoal.scrapy.worker.stand_in import stand_in
from shoal.scrapy.worker.visits import ScrapyVisits
from shoal.sessions.accounts import KnownAccount
from shoal.spider.page import Page
from shoal.worker.report import Report, give_back
from shoal.worker.visits.identities import LiveJars
from shoal.worker.visits.identity_visits import IdentityVisits
from shoal.worker.visits.outcomes import Judge

URL = "https://shop.example/p/1"
LOGIN = "https://shop.example/login"
NOW = 1_000.0
# Older ones want it, newer ones warn of it.
MORE: Any = {} if version_info >= (2, 14) else {"spider": Spider(name="shop")}


class Accounts:
    """Keeps jars as they are; what begins with a # was written by somebody else."""

    pools = ("@shop",)

    async def open(self) -> None: ...

    async def keep_fresh(self) -> None: ...

    async def close(self) -> None: ...

    def account(self, identity: str) -> KnownAccount | None:
        return KnownAccount("alice", {}) if identity == "shop#alice" else None

    def table(self, identity: str) -> SessionConfig:
        return SessionConfig(accounts="file:accounts.csv", login_url=LOGIN)

    def seal(self, identity: str, jar: Jar) -> bytes:
        return msgspec.json.encode(jar)

    def unseal(self, identity: str, kept: bytes) -> Jar | None:
        return None if kept.startswith(b"#") else msgspec.json.decode(kept, type=Jar)


class Shop(Spider):
    name = "shop"

    def logged_in(self, page: Page) -> bool:
        if page.css("b.odd"):
            raise ValueError("an odd page")
        return bool(page.css("a.logout"))


class Scene:
    """Visits with accounts, and an engine that a test plays."""

    def __init__(self) -> None:
        self.accounts = Accounts()
        self.middleware = CookiesMiddleware()
        self.logins: list[str] = []
        jars, live = Jars(self.middleware.jars), LiveJars(self.accounts)
        rules, spider = Rules(sessions=("shop",), session="shop"), Shop()
        judge = Judge(rules, Admission(rules))
        nobody: Any = None
        gate = IdentityVisits(self.accounts, live, nobody, stand_in(spider), nobody, judge)
        requests = Requests(spider, RequestFingerprinter(), jars, sessions=Sessions(rules))
        self.visits = ScrapyVisits(
            *("worker", requests, Intake(cast(Frontier, None), "crawl", lambda: None)),
            lambda: None,
            is_logged=True,
            identities=Identities(AccountJars(jars, live), gate, self._log_in, self.accounts.close),
        )

    async def _log_in(self, lease: Lease, identity: LeasedIdentity, send_by: float) -> Report:
        self.logins.append(identity.name)
        return give_back(lease, sent=True)

    def kept(self, *lines: str) -> bytes:
        return self.accounts.seal("", EMPTY.after(changes(EMPTY, lines, URL, NOW), NOW))

    async def begin(self, identity: LeasedIdentity, **fields: str) -> asyncio.Task[Report]:
        task = Task(url=URL, session="shop", **fields)  # type: ignore[arg-type]
        lease = Lease(b"12345678", "token", task, identity=identity)
        visit = asyncio.create_task(self.visits.visit(lease, inf, lambda: None))
        await asyncio.sleep(0)
        return visit

    def next_request(self) -> Request:
        request = self.visits.next_request()
        assert request is not None
        life = self.visits.life_of(request)
        assert life is not None
        life.sent = True
        return request

    def sends(self, request: Request) -> str:
        self.middleware.process_request(request, **MORE)
        return (request.headers.get("Cookie") or b"").decode()

    def answers(self, request: Request, *cookies: str) -> None:
        response = Response(request.url, headers={"Set-Cookie": list(cookies)})
        self.middleware.process_response(request, response, **MORE)

    async def visit(
        self, then: Callable[[Request], object], identity: LeasedIdentity | None = None
    ) -> Report:
        visit = await self.begin(identity or alice(self.kept("sid=1; Path=/")))
        request = self.next_request()
        then(request)
        self.visits.ended(request)
        return await visit


def alice(jar: bytes = b"", *, is_in: bool = True, expired: int = 0) -> LeasedIdentity:
    return LeasedIdentity("shop#alice", is_in, jar, expired=expired)


def inside(body: bytes = b"<a class=logout>out</a>") -> HtmlResponse:
    return HtmlResponse(URL, body=body, headers={"Content-Type": "text/html"})


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def test_a_request_goes_with_the_cookies_of_its_account(scene: Scene) -> None:
    visit = await scene.begin(alice(scene.kept("sid=1; Path=/; Secure")))
    request = scene.next_request()
    assert request.meta == {"cookiejar": "shop#alice", "shoal_session": "shop"}
    assert scene.sends(request) == "sid=1"
    scene.answers(request)
    assert scene.visits.answered(request, inside())
    scene.visits.reading(request)
    scene.visits.ended(request)
    outcome = (await visit).outcome
    assert (outcome.verdict, outcome.identity) == (Verdict.DONE, None), "nothing has changed"


async def test_what_a_page_changes_is_told(scene: Scene) -> None:
    report = await scene.visit(lambda request: scene.answers(request, "sid=2; Path=/"))
    told = report.outcome.identity
    assert told is not None
    assert told.change is LoginChange.NONE
    assert told.jar is not None
    jar = scene.accounts.unseal("", told.jar)
    assert jar is not None
    assert [(cookie.name, cookie.value) for cookie in jar.cookies] == [("sid", "2")]


async def test_another_process_may_have_changed_it_meanwhile(scene: Scene) -> None:
    await scene.visit(lambda request: scene.answers(request, "mine=1; Path=/"))
    visit = await scene.begin(alice(scene.kept("sid=9; Path=/")))
    request = scene.next_request()
    assert scene.sends(request) == "sid=9"
    scene.visits.ended(request)
    await visit


async def test_of_several_under_way_here_the_newest_cookies_count(scene: Scene) -> None:
    """The lease of the second was granted before the first was finished."""
    kept = scene.kept("sid=1; Path=/", "old=1; Path=/")
    first, second = await scene.begin(alice(kept)), await scene.begin(alice(kept))
    one, two = scene.next_request(), scene.next_request()
    scene.answers(one, "sid=2; Path=/", "old=; Max-Age=0; Path=/")
    scene.visits.ended(one)
    third = await scene.begin(alice(kept))
    three = scene.next_request()
    assert scene.sends(two) == scene.sends(three) == "sid=2"
    for request in (two, three):
        scene.visits.ended(request)
    told = [(await visit).outcome.identity for visit in (first, second, third)]
    assert [report is not None for report in told] == [True, False, False]


async def test_an_account_that_is_logged_out_logs_in_first(scene: Scene) -> None:
    visit = await scene.begin(alice(is_in=False))
    assert (await visit).outcome.verdict is Verdict.RETURNED
    assert scene.logins == ["shop#alice"]
    assert scene.visits.next_request() is None


async def test_so_does_one_whose_cookies_cannot_be_read(scene: Scene) -> None:
    """When it is lent the next time."""
    outcome = (await (await scene.begin(alice(b"#?")))).outcome
    assert (outcome.verdict, outcome.sent) == (Verdict.RETURNED, False)
    assert outcome.identity == IdentityReport(LoginChange.OUT)
    assert scene.visits.next_request() is None


async def test_an_account_that_is_not_known_here_is_for_others(scene: Scene) -> None:
    outcome = (await (await scene.begin(LeasedIdentity("shop#carol", is_in=True)))).outcome
    assert (outcome.verdict, outcome.sent) == (Verdict.RETURNED, False)
    assert outcome.identity == IdentityReport(LoginChange.CUT), "it rests, so that they get it"


async def test_a_proof_that_raises_is_an_error_of_the_page(scene: Scene) -> None:
    def engine(request: Request) -> None:
        assert not scene.visits.answered(request, inside(b"<b class=odd>?</b>"))

    outcome = (await scene.visit(engine)).outcome
    assert (outcome.verdict, outcome.identity) == (Verdict.DEAD, None)
    assert "an odd page" in outcome.reason


def _redirect(to: str) -> Response:
    return Response(URL, status=302, headers={"Location": to})


@pytest.mark.parametrize(
    "answer",
    [
        Response(URL, status=401),
        _redirect("/login?next=/p/1"),
        Request(f"{LOGIN}?next=/p/1", meta={"redirect_urls": [URL]}),
        inside(b"<h1>Please log in</h1>"),
    ],
)
async def test_a_session_that_has_ended_is_not_the_end_of_the_task(
    scene: Scene, answer: Response | Request
) -> None:
    """No callback is called, and no redirect followed."""

    def engine(request: Request) -> None:
        assert not scene.visits.answered(request, answer)

    report = await scene.visit(engine)
    outcome = report.outcome
    assert (outcome.verdict, outcome.sent) == (Verdict.RETURNED, True)
    assert outcome.reason.startswith("its session had ended: ")
    assert outcome.identity == IdentityReport(LoginChange.OUT)
    assert report.page is None


@pytest.mark.parametrize(
    "answer",
    [
        inside(),
        HtmlResponse(URL, status=404, body=b"gone"),
        Response(URL, body=b'{"json": 1}'),
        HtmlResponse(URL, body=b"<h1>...", flags=["download_stopped"]),
        _redirect("/p/2"),
        Request("https://shop.example/p/2"),
        cast(Any, Failure)(TimeoutError()),
    ],
)
async def test_other_answers_say_nothing_of_it(
    scene: Scene, answer: Response | Request | Failure
) -> None:
    def engine(request: Request) -> None:
        assert scene.visits.answered(request, answer)

    assert (await scene.visit(engine)).outcome.identity is None


async def test_one_that_took_too_long_lets_its_account_rest(scene: Scene) -> None:
    """The site may still be at work on it."""

    def engine(request: Request) -> None:
        scene.visits.answered(request, cast(Any, Failure)(cast(Any, SlowError)()))

    assert (await scene.visit(engine)).outcome.identity == IdentityReport(LoginChange.CUT)


async def test_a_callback_may_know_better(scene: Scene) -> None:
    """What it has found until then is found again."""

    def engine(request: Request) -> None:
        scene.visits.answered(request, inside())
        life = scene.visits.life_of(request)
        assert life is not None
        life.follow_ups.append(Entry(b"87654321", Task(url=f"{URL}0")))
        life.error = SessionExpired("no price")

    outcome = (await scene.visit(engine)).outcome
    assert (outcome.verdict, outcome.identity) == (
        Verdict.RETURNED,
        IdentityReport(LoginChange.OUT),
    )
    assert outcome.reason == "its session had ended: no price"
    assert not outcome.follow_ups


async def test_a_page_that_ends_every_session_is_dead_at_last(scene: Scene) -> None:
    verdicts = []
    for expired in range(MAX_EXPIRED + 1):
        identity = alice(scene.kept("sid=1"), expired=expired)
        report = await scene.visit(
            lambda request: scene.visits.answered(request, Response(URL, status=401)), identity
        )
        verdicts.append(report.outcome.verdict)
    assert verdicts == [Verdict.RETURNED] * MAX_EXPIRED + [Verdict.DEAD]
    assert report.outcome.identity == IdentityReport(LoginChange.OUT)
    assert report.page is not None
