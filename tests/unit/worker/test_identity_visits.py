"""Visits with an identity: logins in place of pages, its cookies, and the end of its session."""

from __future__ import annotations

import time
from collections.abc import Iterator
from math import inf
from typing import Any

import pytest
from msgspec.structs import replace

from shoal.config import Rules
from shoal.core.cookies import EMPTY, Jar, changes
from shoal.core.exits import Blame, Lent, Passage
from shoal.core.identities import IdentityReport, LeasedIdentity, LoginChange
from shoal.core.identity_policy import MAX_EXPIRED
from shoal.core.policy import MAX_REDIRECTS
from shoal.core.session_config import SessionConfig
from shoal.core.task import Task
from shoal.errors import ExitFault, FetchError, Refused, SessionExpired, UnknownCrawl
from shoal.fetch.port import Response, Route
from shoal.frontier.admission import Admission, default_pool
from shoal.frontier.values import Lease, Outcome, Verdict
from shoal.spider.page import Page
from shoal.spider.session import Session
from shoal.spider.spider import Spider
from shoal.worker.reparse import page_of
from shoal.worker.report import Report
from shoal.worker.visits.identities import LiveJars
from shoal.worker.visits.identity_logins import IdentityLogins
from shoal.worker.visits.identity_visits import IdentityVisits
from shoal.worker.visits.known_links import KnownUrls
from shoal.worker.visits.outcomes import Judge
from shoal.worker.visits.page_reader import PageReader
from shoal.worker.visits.visitor import Visitor
from support.accounts import BY_FORM, CANARY, PROOF, SITE, FakeSessions, Shop, answer
from support.until import in_time

RULES = Rules(robots=False, sessions=("shop",), session="shop")
ROUTE = Route("res-1", allows_direct=True)
LENT = Lent("res-1", pool="res")
URL = f"{SITE}/product/1"


class Reading(Spider):
    """Notes what its handler gets, and follows all links."""

    def __init__(self) -> None:
        self.read: list[Page] = []

    def parse(self, page: Page) -> Iterator[Any]:
        self.read.append(page)
        yield page.follow_all("a")


def jar(*lines: str) -> Jar:
    now = time.time()
    return EMPTY.after(changes(EMPTY, lines, f"{SITE}/", now), now)


class Bench:
    """A visitor with one account, at a shop."""

    def __init__(
        self,
        shop: Shop | None = None,
        *,
        spider: Spider | None = None,
        table: SessionConfig = BY_FORM,
        rules: Rules = RULES,
    ) -> None:
        self.shop = shop or Shop()
        self.spider = spider or Reading()
        self.sessions = FakeSessions(table)
        self.rules = rules
        self.turns: list[tuple[Lent | None, str]] = []
        self.admission = admission = Admission(rules)
        judge, jars = Judge(rules, admission), LiveJars(self.sessions)
        common = (self.sessions, jars)
        logins = IdentityLogins("w", *common, self.spider, self.shop, judge, self.turn, self.route)
        identities = IdentityVisits(
            *common, logins, self.spider, self.shop, judge, self.route, default_pool(rules)
        )
        reader = PageReader(
            self.spider, rules, admission, KnownUrls(), keeps_raw=True, prove=identities.prove
        )
        self.visitor = Visitor(
            "w", self.shop, reader, judge, None, None, self.route, identities=identities
        )

    async def turn(self, lent: Lent | None, host: str) -> float:
        self.turns.append((lent, host))
        return 0.0

    def route(self, lent: Lent, task_pool: str | None) -> Route | None:
        return ROUTE if lent == LENT else None

    def lease(
        self,
        kept: Jar | bytes = EMPTY,
        *,
        is_in: bool = True,
        lent: Lent | None = None,
        task: Task | None = None,
        **identity: Any,
    ) -> Lease:
        entry = self.admission.admit(task or Task(url=URL))
        sealed = kept if isinstance(kept, bytes) else self.sessions.seal("shop#alice", kept)
        whose = LeasedIdentity("shop#alice", is_in, sealed, **identity)
        return Lease(entry.fingerprint, "t", entry.task, identity=whose, lent=lent)

    async def visit(self, lease: Lease, send_by: float = inf) -> Report:
        return await in_time("the visit's end", self.visitor.visit(lease, send_by))

    async def outcome(self, lease: Lease) -> Outcome:
        return (await self.visit(lease)).outcome

    def jar_of(self, outcome: Outcome) -> str:
        assert outcome.identity is not None
        assert outcome.identity.jar is not None
        kept = self.sessions.unseal("shop#alice", outcome.identity.jar)
        assert kept is not None
        return kept.header(f"{SITE}/", time.time())


class TestLogin:
    async def test_takes_the_place_of_the_page(self) -> None:
        bench = Bench()
        lease = bench.lease(is_in=False)
        outcome = await bench.outcome(lease)
        assert (outcome.verdict, outcome.sent, outcome.reason) == (Verdict.RETURNED, True, "")
        assert bench.shop.lines == ["GET /login", "POST /login", "GET /home"]
        assert outcome.identity is not None
        assert outcome.identity.change is LoginChange.IN
        assert outcome.identity.login_url == f"{SITE}/login"
        assert bench.jar_of(outcome) == "sid=1"
        assert bench.turns == [(None, "shop.example")] * 2, "the lease permits the first"

    async def test_at_another_host_each_request_has_its_turn(self) -> None:
        table = replace(BY_FORM, login_url="https://id.example/login")
        bench = Bench(table=table)
        await bench.visit(bench.lease(is_in=False))
        assert bench.turns[0] == (None, "id.example")

    async def test_goes_by_the_exit_that_was_lent(self) -> None:
        bench = Bench()
        outcome = await bench.outcome(bench.lease(is_in=False, lent=LENT))
        assert {request.route for request in bench.shop.asked} == {ROUTE}
        assert bench.turns == [(LENT, "shop.example")] * 2
        assert outcome.passage == Passage()

    async def test_by_an_exit_that_is_not_known_here_it_is_given_back(self) -> None:
        bench = Bench()
        for is_in in (True, False):
            outcome = await bench.outcome(bench.lease(is_in=is_in, lent=Lent("res-9", pool="res")))
            assert (outcome.verdict, outcome.sent) == (Verdict.RETURNED, False)
        assert bench.shop.asked == []

    async def test_that_fails(self, caplog: pytest.LogCaptureFixture) -> None:
        bench = Bench(Shop(home=answer(200, "Wrong password")))
        outcome = await bench.outcome(bench.lease(jar("old=1"), is_in=False))
        assert outcome.verdict is Verdict.RETURNED
        said = outcome.identity
        assert said is not None
        assert (said.change, said.jar) == (LoginChange.FAILED, b"")
        assert said.reason == "no proof of the login on https://shop.example/home (HTTP 200)"
        assert "shop#alice could not log in: no proof" in caplog.text
        assert CANARY not in caplog.text

    @pytest.mark.parametrize("status", [500, 503, 429])
    async def test_where_the_host_is_ill(self, status: int) -> None:
        bench = Bench(Shop(login=answer(status, "", Retry_After="7")))
        report = await bench.visit(bench.lease(is_in=False))
        outcome = report.outcome
        assert (outcome.verdict, outcome.fault) == (Verdict.RETRY, True)
        assert outcome.reason == f"login: HTTP {status} (shop#alice)"
        assert outcome.identity is None
        assert outcome.retry_in_s >= 7
        assert (outcome.pushback is not None) == (status != 500)
        assert report.page is not None
        assert (report.page.status, report.page.error) == (status, outcome.reason)

    async def test_where_another_host_is_ill_that_of_the_page_is_spared(self) -> None:
        table = replace(BY_FORM, login_url="https://id.example/login")
        bench = Bench(Shop(login=answer(503)), table=table)
        outcome = await bench.outcome(bench.lease(is_in=False))
        assert (outcome.verdict, outcome.fault, outcome.pushback) == (Verdict.RETRY, False, None)

    async def test_no_answer(self) -> None:
        bench = Bench(Shop(login=FetchError("no connection")))
        outcome = await bench.outcome(bench.lease(is_in=False))
        assert outcome.reason == "login: no connection (shop#alice)"
        assert (outcome.verdict, outcome.fault) == (Verdict.RETRY, True)

    async def test_refused(self) -> None:
        bench = Bench(Shop(login=Refused("a private address")))
        outcome = await bench.outcome(bench.lease(is_in=False))
        assert (outcome.verdict, outcome.fault) == (Verdict.DEAD, False)

    async def test_an_exit_that_does_not_work(self) -> None:
        bench = Bench(Shop(login=ExitFault("not let in", Blame.EXIT)))
        report = await bench.visit(bench.lease(is_in=False, lent=LENT))
        assert report.outcome.verdict is Verdict.RETURNED
        assert report.outcome.passage == Passage(Blame.EXIT)
        assert report.page is None

    async def test_a_block(self) -> None:
        bench = Bench(Shop(login=answer(200, "", cf_mitigated="captcha")))
        outcome = await bench.outcome(bench.lease(is_in=False, lent=LENT))
        assert outcome.passage is not None
        assert outcome.passage.block == "captcha"
        assert outcome.reason == "login: HTTP 200, captcha (cf-mitigated: captcha) (shop#alice)"

    async def test_of_a_crawl_that_is_gone(self) -> None:
        bench = Bench()

        async def gone(lent: Lent | None, host: str) -> float:
            raise UnknownCrawl("shop")

        bench.visitor._identities.logins._turn = gone  # type: ignore[union-attr]
        outcome = await bench.outcome(bench.lease(is_in=False))
        assert (outcome.verdict, outcome.identity) == (Verdict.RETURNED, None)


class TestPage:
    async def test_has_the_cookies_and_the_user_agent_of_its_identity(self) -> None:
        bench = Bench()
        report = await bench.visit(bench.lease(jar("sid=1"), user_agent="Phone"))
        assert report.outcome.verdict is Verdict.DONE
        (request,) = bench.shop.asked
        assert (request.cookies, request.user_agent) == ("sid=1", "Phone")
        assert request.route.allows_direct
        assert report.outcome.identity is None, "nothing has changed"
        assert report.page is not None
        assert report.page.exit == "shop#alice"

    async def test_by_an_exit(self) -> None:
        bench = Bench()
        report = await bench.visit(bench.lease(jar("sid=1"), lent=LENT))
        assert bench.shop.asked[0].route == ROUTE
        assert report.page is not None
        assert report.page.exit == "shop#alice res-1"
        assert report.outcome.passage == Passage()

    async def test_tells_its_handler_whose_it_is(self) -> None:
        bench = Bench()
        report = await bench.visit(bench.lease(jar("sid=1")))
        assert isinstance(bench.spider, Reading)
        (page,) = bench.spider.read
        assert (page.session, page.task.session) == ("shop#alice", "shop")
        assert {entry.task.session for entry in report.outcome.follow_ups} == {"shop"}

    async def test_changes_the_jar(self) -> None:
        shop = Shop(product=answer(200, PROOF, Set_Cookie="seen=1; path=/"))
        bench = Bench(shop)
        outcome = await bench.outcome(bench.lease(jar("sid=1")))
        assert bench.jar_of(outcome) == "sid=1; seen=1"
        assert outcome.identity is not None
        assert outcome.identity.change is LoginChange.NONE
        assert outcome.cookies is None

    async def test_is_archived_without_cookies_and_read_again_as_it_was(self) -> None:
        shop = Shop(product=answer(200, PROOF, Set_Cookie=f"sid={CANARY}; path=/"))
        bench = Bench(shop)
        report = await bench.visit(bench.lease(jar("sid=1")))
        raw = report.raw
        assert raw is not None
        assert raw.headers == [("Content-Type", "text/html")]
        assert CANARY not in repr(raw)
        page = page_of(raw)
        assert (page.session, raw.fingerprint) == ("shop#alice", report.outcome.lease.fingerprint)
        assert page.task.session == "shop", "the files of its items are known by that"

    async def test_that_fails_says_whose_try_it_was(self) -> None:
        bench = Bench(Shop(product=answer(500)))
        report = await bench.visit(bench.lease(jar("sid=1")))
        assert report.outcome.reason == "HTTP 500 (shop#alice)"
        assert report.page is not None
        assert report.page.error == "HTTP 500 (shop#alice)"
        bench = Bench(Shop(product=FetchError("no connection")))
        outcome = await bench.outcome(bench.lease(jar("sid=1")))
        assert outcome.reason == "no connection (shop#alice)"
        bench = Bench(Shop(product=answer(404)))
        assert (await bench.outcome(bench.lease(jar("sid=1")))).reason == "HTTP 404"

    @pytest.mark.parametrize("is_in", [True, False])
    @pytest.mark.parametrize("lent", [None, LENT])
    async def test_that_took_too_long_lets_its_account_rest(
        self, is_in: bool, lent: Lent | None
    ) -> None:
        """The site may still be at work on it, or on the login."""
        slow = FetchError("timed out")
        slow.__cause__ = TimeoutError()
        bench = Bench(Shop(product=slow, login=slow))
        outcome = await bench.outcome(bench.lease(jar("sid=1"), is_in=is_in, lent=lent))
        assert outcome.identity == IdentityReport(LoginChange.CUT)
        assert outcome.verdict is Verdict.RETRY

    async def test_a_block_without_an_exit_is_judged_as_without_exits(self) -> None:
        bench = Bench(Shop(product=answer(403, "access denied")))
        outcome = await bench.outcome(bench.lease(jar("sid=1")))
        assert (outcome.verdict, outcome.reason) == (Verdict.DEAD, "HTTP 403 (shop#alice)")


class TestNotHere:
    async def test_an_account_that_is_not_known_is_given_back(self) -> None:
        bench = Bench()
        lease = bench.lease()
        lease.identity = LeasedIdentity("shop#bob", True)
        outcome = await bench.outcome(lease)
        assert (outcome.verdict, outcome.sent) == (Verdict.RETURNED, False)
        rests = IdentityReport(LoginChange.CUT)
        assert outcome.identity == rests, "it would come back at once, and others never get it"
        assert bench.shop.asked == []

    async def test_a_worker_without_accounts_gives_back(self) -> None:
        bench = Bench()
        bench.visitor._identities = None
        outcome = await bench.outcome(bench.lease())
        assert (outcome.verdict, outcome.sent) == (Verdict.RETURNED, False)

    @pytest.mark.parametrize("is_in", [True, False])
    async def test_no_exit_no_request(self, is_in: bool) -> None:
        by_table = Bench(table=replace(BY_FORM, pool="res"))
        rules = Rules(
            robots=False, sessions=("shop",), session="shop", pools=("dc",), proxy_pool="dc"
        )
        for bench in (by_table, Bench(rules=rules)):
            outcome = await bench.outcome(bench.lease(jar("sid=1"), is_in=is_in))
            assert (outcome.verdict, outcome.sent) == (Verdict.RETRY, False)
            assert "was lent for it (shop#alice)" in outcome.reason
            assert bench.shop.asked == []

    async def test_a_group_may_go_directly_where_the_crawl_does_not(self) -> None:
        rules = Rules(
            robots=False, sessions=("shop",), session="shop", pools=("dc",), proxy_pool="dc"
        )
        bench = Bench(table=replace(BY_FORM, pool="direct"), rules=rules)
        assert (await bench.outcome(bench.lease(jar("sid=1")))).verdict is Verdict.DONE

    async def test_cookies_that_cannot_be_read(self) -> None:
        bench = Bench()
        outcome = await bench.outcome(bench.lease(b"shop#bob []"))
        assert (outcome.verdict, outcome.sent) == (Verdict.RETURNED, False)
        assert outcome.identity is not None
        assert outcome.identity.change is LoginChange.OUT
        outcome = await bench.outcome(bench.lease(b"shop#bob []", is_in=False))
        assert bench.jar_of(outcome) == "sid=1", "it logs in without them"


class TestEnd:
    @pytest.mark.parametrize(
        ("said", "why"),
        [
            (answer(401), "HTTP 401"),
            (answer(302, "", Location="/login?next=/x"), "HTTP 302 to the login"),
            (answer(303, "", Location="https://id.example/signin"), "HTTP 303 to the login"),
            (answer(200, "Please log in"), "a page without the proof of a login"),
        ],
    )
    @pytest.mark.parametrize("lent", [None, LENT])
    async def test_the_task_goes_back(self, said: Response, why: str, lent: Lent | None) -> None:
        bench = Bench(Shop(product=said))
        report = await bench.visit(bench.lease(jar("sid=1"), lent=lent))
        outcome = report.outcome
        assert (outcome.verdict, outcome.sent) == (Verdict.RETURNED, True)
        assert outcome.reason == f"its session had ended: {why}"
        assert outcome.identity is not None
        assert outcome.identity.change is LoginChange.OUT
        assert (list(outcome.follow_ups), report.page) == ([], None)
        assert outcome.passage == (Passage() if lent else None), "the exit is not to blame"

    @pytest.mark.parametrize("named", ["table", "spider", "identity"])
    async def test_where_people_log_in_is_said_in_three_places(self, named: str) -> None:
        door = f"{SITE}/door"
        table = SessionConfig(
            accounts="x", logged_in="a", login_url=door if named == "table" else ""
        )
        spider = Reading()
        spider.login_url = door if named == "spider" else ""
        bench = Bench(
            Shop(product=answer(302, "", Location="/door?from=1")), spider=spider, table=table
        )
        known = door if named == "identity" else ""
        outcome = await bench.outcome(bench.lease(jar("sid=1"), login_url=known))
        assert outcome.verdict is Verdict.RETURNED
        other = await bench.outcome(bench.lease(jar("sid=1"), task=Task(url=f"{door}?x=1")))
        assert other.verdict is not Verdict.RETURNED or named == "identity"

    async def test_a_redirect_to_elsewhere_is_none(self) -> None:
        bench = Bench(Shop(product=answer(302, "", Location="/product/2")))
        assert (await bench.outcome(bench.lease(jar("sid=1")))).verdict is Verdict.DONE

    @pytest.mark.parametrize("expired", range(MAX_EXPIRED + 1))
    async def test_the_third_time_it_is_dead(self, expired: int) -> None:
        bench = Bench(Shop(product=answer(401)))
        report = await bench.visit(bench.lease(jar("sid=1"), expired=expired))
        outcome = report.outcome
        is_over = expired == MAX_EXPIRED
        assert outcome.verdict is (Verdict.DEAD if is_over else Verdict.RETURNED)
        assert outcome.identity is not None
        assert outcome.identity.change is LoginChange.OUT
        if is_over:
            words = "its session had ended, 3 times in a row: HTTP 401 (shop#alice)"
            assert outcome.reason == words
            assert report.page is not None
            assert report.page.error == words

    @pytest.mark.parametrize(
        "said", [answer(401), answer(200, "news"), answer(302, "", Location="/login")]
    )
    async def test_other_sites_know_nothing_of_it(self, said: Response) -> None:
        """Each link to one would cost logins otherwise, which change nothing."""
        bench, news = Bench(Shop(product=said)), Task(url="https://news.example/product")
        outcome = await bench.outcome(bench.lease(jar("sid=1"), task=news))
        assert outcome.verdict is Verdict.DEAD
        assert outcome.reason.startswith("a site that the account is a stranger to, which needs")
        assert outcome.identity is None, "it is logged in still"

    @pytest.mark.parametrize(
        ("url", "cookie"),
        [
            ("https://www.shop.example/product", "sid=1"),
            ("https://forum.example/product", "sid=1; Max-Age=0"),
        ],
        ids=["where people log in", "it has no cookies any more"],
    )
    async def test_what_may_be_its_own_site(self, url: str, cookie: str) -> None:
        bench = Bench(Shop(product=answer(401)))
        outcome = await bench.outcome(bench.lease(jar(cookie), task=Task(url=url)))
        assert outcome.verdict is Verdict.RETURNED

    async def test_a_site_of_its_cookies_is_its_own(self) -> None:
        forum, now = "https://forum.example/product", time.time()
        kept = EMPTY.after(changes(EMPTY, ["sid=1"], forum, now), now)
        bench = Bench(Shop(product=answer(401)))
        outcome = await bench.outcome(bench.lease(kept, task=Task(url=forum)))
        assert outcome.verdict is Verdict.RETURNED

    async def test_a_handler_says_so(self) -> None:
        class Noticing(Spider):
            def parse(self, page: Page) -> None:
                raise SessionExpired("asks for a password")

        bench = Bench(spider=Noticing())
        outcome = await bench.outcome(bench.lease(jar("sid=1")))
        assert outcome.verdict is Verdict.RETURNED
        assert outcome.reason == "its session had ended: asks for a password"

    async def test_without_an_identity_a_handler_that_says_so_has_failed(self) -> None:
        class Noticing(Spider):
            def parse(self, page: Page) -> None:
                raise SessionExpired

        bench = Bench(Shop(product=answer(200, "x")), spider=Noticing(), rules=Rules(robots=False))
        lease = bench.lease()
        lease.identity = None
        outcome = await bench.outcome(lease)
        assert (outcome.verdict, outcome.reason) == (Verdict.DEAD, "SessionExpired:")

    async def test_without_an_identity_a_401_is_what_it_was(self) -> None:
        bench = Bench(Shop(product=answer(401)), rules=Rules(robots=False))
        lease = bench.lease()
        lease.identity = None
        outcome = await bench.outcome(lease)
        assert (outcome.verdict, outcome.reason) == (Verdict.DEAD, "HTTP 401")

    async def test_what_is_no_html_proves_nothing(self) -> None:
        picture = answer(200, "{}")
        picture.headers["Content-Type"] = "application/json"  # type: ignore[index]
        bench = Bench(Shop(product=picture))
        assert (await bench.outcome(bench.lease(jar("sid=1")))).verdict is Verdict.DONE

    async def test_the_proof_comes_before_what_is_expected_and_after_what_is_blocked(self) -> None:
        class Expecting(Reading):
            expect = "h1"

        class Deciding(Reading):
            def blocked(self, page: Page) -> str:
                return "captcha"

        shop = Shop(product=answer(200, "Please log in"))
        outcome = await Bench(shop, spider=Expecting()).outcome(Bench().lease(jar("sid=1")))
        assert outcome.verdict is Verdict.RETURNED
        outcome = await Bench(shop, spider=Deciding()).outcome(Bench().lease(jar("sid=1")))
        assert outcome.reason == "HTTP 200, captcha (shop#alice)"

    async def test_a_proof_that_raises_is_the_spiders_fault(self) -> None:
        class Wrong(Reading):
            def logged_in(self, page: Page) -> bool:
                raise KeyError("x")

        outcome = await Bench(spider=Wrong()).outcome(Bench().lease(jar("sid=1")))
        assert (outcome.verdict, outcome.ours) == (Verdict.DEAD, True)
        assert outcome.reason == "KeyError: 'x' (shop#alice)"


class TestSharedJar:
    async def test_several_requests_share_it(self) -> None:
        """Each outcome has all of it, also where the lease brought an older one."""
        bench = Bench(
            Shop(
                a=answer(200, PROOF, Set_Cookie="a=1; path=/"),
                b=answer(200, PROOF, Set_Cookie="b=1; path=/"),
            )
        )
        first = jar("sid=1")
        leases = [bench.lease(first, task=Task(url=f"{SITE}/{name}")) for name in ("a", "b", "b")]
        outcomes = [await bench.outcome(lease) for lease in leases]
        assert bench.jar_of(outcomes[0]) == "sid=1; a=1"
        assert bench.jar_of(outcomes[1]) == "sid=1; a=1; b=1"
        assert bench.shop.asked[2].cookies == "sid=1; a=1; b=1"

    async def test_what_we_said_ourselves_is_older_than_what_we_have(self) -> None:
        bench = Bench(
            Shop(
                a=answer(200, PROOF, Set_Cookie="a=1; path=/"),
                b=answer(200, PROOF, Set_Cookie="b=1; path=/"),
            )
        )
        first = jar("sid=1")
        one = await bench.outcome(bench.lease(first, task=Task(url=f"{SITE}/a")))
        assert one.identity is not None
        await bench.visit(bench.lease(first, task=Task(url=f"{SITE}/b")))
        await bench.visit(bench.lease(one.identity.jar or b"", task=Task(url=f"{SITE}/c")))
        assert bench.shop.asked[-1].cookies.endswith("a=1; b=1")

    async def test_what_somebody_else_said_counts(self) -> None:
        bench = Bench(Shop(a=answer(200, PROOF, Set_Cookie="a=1; path=/")))
        await bench.visit(bench.lease(jar("sid=1"), task=Task(url=f"{SITE}/a")))
        await bench.visit(bench.lease(jar("sid=9"), task=Task(url=f"{SITE}/a")))
        assert bench.shop.asked[-1].cookies == "sid=9"

    async def test_a_login_begins_a_new_one(self) -> None:
        bench = Bench()
        outcome = await bench.outcome(bench.lease(jar("device=7"), is_in=False))
        assert bench.jar_of(outcome) == "device=7; sid=1"
        assert outcome.identity is not None
        await bench.visit(bench.lease(outcome.identity.jar or b""))
        assert bench.shop.asked[-1].cookies == "device=7; sid=1"


class TestRedirect:
    async def followed(self, bench: Bench, lease: Lease) -> tuple[Outcome, Task | None]:
        outcome = await bench.outcome(lease)
        return outcome, outcome.follow_ups[0].task if outcome.follow_ups else None

    async def test_brings_no_cookies_along(self) -> None:
        rules = replace(RULES, cookies="visit")
        shop = Shop(product=answer(302, "", Location="https://b.example/", Set_Cookie="a=1"))
        outcome, task = await self.followed(bench := Bench(shop, rules=rules), bench_lease(bench))
        assert task is not None
        assert (task.cookies, task.session) == (None, "shop")
        assert outcome.cookies is None
        assert "sid=1" in bench.jar_of(outcome)

    async def test_with_another_cookie_it_is_no_loop(self) -> None:
        shop = Shop(product=answer(302, "", Location="/product/1", Set_Cookie="age=1; path=/"))
        bench = Bench(shop)
        outcome, task = await self.followed(bench, bench_lease(bench))
        assert (outcome.verdict, outcome.reason) == (Verdict.DONE, f"HTTP 302 to {URL}")
        assert task is not None
        assert task.dont_filter, "else it would be known already"
        assert outcome.identity is not None
        again = bench.lease(outcome.identity.jar or b"", task=task)
        outcome, _ = await self.followed(bench, again)
        assert "in a loop" in outcome.reason, "the same cookie, and the same address"
        assert outcome.reason.endswith(" (shop#alice)")

    async def test_goes_on_no_longer_than_redirects_may(self) -> None:
        bench = Bench(Shop(product=lambda request: _counting(bench)))
        task = Task(url=URL)
        for _ in range(MAX_REDIRECTS):
            _, following = await self.followed(bench, bench.lease(jar("sid=1"), task=task))
            assert following is not None
            task = following
        outcome, _ = await self.followed(bench, bench.lease(jar("sid=1"), task=task))
        assert outcome.verdict is Verdict.DEAD
        assert outcome.reason.startswith(f"more than {MAX_REDIRECTS} redirects")


def bench_lease(bench: Bench) -> Lease:
    return bench.lease(jar("sid=1"))


def _counting(bench: Bench) -> Response:
    number = len(bench.shop.asked)
    return answer(302, "", Location="/product/1", Set_Cookie=f"n={number}; path=/")


async def test_the_spiders_login_is_used_where_the_table_has_no_form() -> None:
    class Coder(Reading):
        async def login(self, session: Session) -> None:
            await session.post(f"{SITE}/login", form=session.account)

    table = SessionConfig(accounts="x", logged_in="a.logout")
    bench = Bench(spider=Coder(), table=table)
    outcome = await bench.outcome(bench.lease(is_in=False))
    assert bench.jar_of(outcome) == "sid=1"
    assert bench.shop.lines == ["POST /login", "GET /home"]
