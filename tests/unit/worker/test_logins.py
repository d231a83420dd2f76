"""Logging in: by code and by form, its proof, its limits, and who is to blame."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from shoal.core.cookies import EMPTY, changes
from shoal.core.policy import SEND_SLACK_S
from shoal.core.session_config import SessionConfig
from shoal.errors import FetchError, LoginFailed, OwnFault, StorageBusy, StorageFailed, TooLate
from shoal.fetch.port import DIRECT, Request, Response, Route
from shoal.spider.page import Page
from shoal.spider.session import Session
from shoal.spider.spider import Spider
from shoal.worker.visits import login_requests, logins
from shoal.worker.visits.login_requests import MAX_REQUESTS, Login, LoginTrouble, NoTurn, Turns
from shoal.worker.visits.logins import LoggedIn, flaw_of, log_in
from shoal.worker.visits.secrets import without_secrets
from support.accounts import ALICE, BY_FORM, CANARY, SITE, FakeAccount, Shop, answer
from support.until import in_time

BY_CODE = SessionConfig(accounts="file:x", logged_in="a.logout")
ROUTE = Route("direct", allows_direct=True)


class Plain(Spider):
    """Leaves the login to its table."""


class Coder(Spider):
    async def login(self, session: Session) -> None:
        page = await session.get(f"{SITE}/login")
        await session.submit(page, "#login", {"user": session.user, "password": session.password})


async def at_once(host: str) -> float:
    return time.monotonic() + 10


async def done(
    spider: Spider,
    shop: Shop,
    table: SessionConfig = BY_CODE,
    *,
    account: FakeAccount = ALICE,
    turn: Any = at_once,
    route: Route = ROUTE,
    login: Login | None = None,
) -> LoggedIn:
    made = login or Login(identity="shop#alice", account=account, table=table, spider=spider)
    return await in_time("the login's end", log_in(made, shop, route, turn))


@pytest.mark.parametrize(("spider", "table"), [(Plain(), BY_FORM), (Coder(), BY_CODE)])
async def test_by_form_and_by_code(spider: Spider, table: SessionConfig) -> None:
    shop = Shop()
    found = await done(spider, shop, table)
    assert shop.lines == ["GET /login", "POST /login", "GET /home"]
    assert found.jar.header(f"{SITE}/", time.time()) == "sid=1"
    assert (found.login_url, found.user_agent) == (f"{SITE}/login", "Test/1")
    assert {request.route for request in shop.asked} == {ROUTE}
    assert {request.task.session for request in shop.asked} == {"shop#alice"}


@pytest.mark.parametrize(
    ("column", "of_table", "said", "kept"),
    [("", "", "", "Test/1"), ("", "b", "b", "b"), ("a", "b", "a", "a")],
)
async def test_what_it_says_it_is(column: str, of_table: str, said: str, kept: str) -> None:
    account = FakeAccount("alice", {**ALICE.fields, "user_agent": column})
    table = SessionConfig(accounts="x", logged_in="a.logout", user_agent=of_table)
    shop = Shop()
    found = await done(Coder(), shop, table, account=account)
    assert found.user_agent == kept, "what the site heard: all that follows says the same"
    assert {request.user_agent for request in shop.asked} == {said}


@pytest.mark.parametrize(
    ("path", "told"),
    [("home?password={}", f"{SITE}/home"), ("home/{}", ""), ("home", f"{SITE}/home")],
)
async def test_where_it_began_tells_no_password(path: str, told: str) -> None:
    class Own(Spider):
        async def login(self, session: Session) -> None:
            await session.get(f"{SITE}/{path.format(session.password)}")
            await session.post(f"{SITE}/login", form=session.account)

    found = await done(Own(), Shop())
    assert found.login_url == told


class TestProof:
    async def test_the_spiders_own_wins(self) -> None:
        class Own(Coder):
            logged_in = "h2"

        with pytest.raises(LoginFailed, match=r"^no proof of the login on .*/home \(HTTP 200\)$"):
            await done(Own(), Shop())

    async def test_a_method(self) -> None:
        class Own(Coder):
            def logged_in(self, page: Page) -> bool:
                return "Lamp" in page.text

        await done(Own(), Shop(), SessionConfig(accounts="x"))

    async def test_is_looked_for_on_the_page_that_is_returned(self) -> None:
        class Own(Spider):
            async def login(self, session: Session) -> Page:
                await session.post(f"{SITE}/login", form=session.account)
                page = await session.get(f"{SITE}/home")
                await session.get(f"{SITE}/other")
                return page

        shop = Shop(other=answer(200, "nothing"))
        await done(Own(), shop)
        assert shop.lines[-1] == "GET /other"

    async def test_an_error_proves_nothing(self) -> None:
        with pytest.raises(LoginFailed, match="HTTP 404"):
            await done(Coder(), Shop(home=answer(404, "<a class=logout>")))

    @pytest.mark.parametrize("returned", [None, "page", True])
    async def test_without_a_page_there_is_none(self, returned: Any) -> None:
        class Own(Spider):
            async def login(self, session: Session) -> Any:
                return returned

        with pytest.raises(LoginFailed, match="is to return a page"):
            await done(Own(), Shop())

    async def test_the_query_of_an_address_is_not_told(self) -> None:
        shop = Shop(login=lambda request: answer(302, "", Location="/x?token=abcdef"), x=answer())

        class Own(Spider):
            async def login(self, session: Session) -> None:
                await session.get(f"{SITE}/login")

        with pytest.raises(LoginFailed, match=r"on https://shop.example/x \(HTTP 200\)$"):
            await done(Own(), shop)


class TestFailure:
    async def test_a_wrong_password(self) -> None:
        account = FakeAccount("alice", {"user": "alice", "password": "wrong-canary"})
        with pytest.raises(LoginFailed) as failed:
            await done(Plain(), Shop(login=answer(200, "no")), BY_FORM, account=account)
        assert "canary" not in str(failed.value)

    @pytest.mark.parametrize(
        "error", [KeyError("x"), SystemExit(3), LoginFailed("locked"), asyncio.CancelledError()]
    )
    async def test_of_the_users_code(self, error: BaseException) -> None:
        class Own(Spider):
            async def login(self, session: Session) -> None:
                raise error

        with pytest.raises(LoginFailed, match=r"locked|KeyError: 'x'|SystemExit: 3|Cancelled"):
            await done(Own(), Shop())

    async def test_tells_no_secret(self) -> None:
        class Own(Spider):
            async def login(self, session: Session) -> None:
                await session.get(f"{SITE}/x")
                raise ValueError(f"{session.account} {session.jar.header(SITE, 0.0)} for alice")

        shop = Shop(x=answer(200, "", Set_Cookie="sid=secret-cookie; path=/"))
        with pytest.raises(LoginFailed) as failed:
            await done(Own(), shop)
        told = str(failed.value)
        assert told.startswith("ValueError: {'user': 'alice', 'password': '***'} sid=***")
        assert "for alice" in told

    async def test_more_requests_than_a_login_needs(self) -> None:
        class Own(Spider):
            async def login(self, session: Session) -> None:
                while True:
                    await session.get(f"{SITE}/x")

        shop = Shop(x=answer())
        with pytest.raises(LoginFailed, match=f"more than {MAX_REQUESTS} requests"):
            await done(Own(), shop)
        assert len(shop.asked) == MAX_REQUESTS

    async def test_more_time_than_a_login_needs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Own(Spider):
            async def login(self, session: Session) -> None:
                await asyncio.sleep(60)

        monkeypatch.setattr(logins, "LIMIT_S", 0.01)
        with pytest.raises(LoginFailed, match=r"took longer than 0\.01 s"):
            await done(Own(), Shop())

    async def test_the_wait_for_turns_is_not_the_logins(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def slow(host: str) -> float:
            await asyncio.sleep(0.3)
            return time.monotonic() + 10

        monkeypatch.setattr(logins, "LIMIT_S", 0.25)
        await done(Coder(), Shop(), turn=slow)

    async def test_a_session_is_of_no_use_afterwards(self) -> None:
        kept = []

        class Own(Coder):
            async def login(self, session: Session) -> None:
                kept.append(session)
                await super().login(session)

        shop = Shop()
        await done(Own(), shop)
        with pytest.raises(RuntimeError, match="only while login"):
            await kept[0].get(f"{SITE}/home")
        assert len(shop.asked) == 3


class TestTrouble:
    @pytest.mark.parametrize("status", [429, 500, 503])
    @pytest.mark.parametrize("catches", [False, True])
    async def test_of_the_host_is_not_the_accounts(self, status: int, catches: bool) -> None:
        class Own(Coder):
            async def login(self, session: Session) -> None:
                try:
                    await super().login(session)
                except FetchError as error:
                    if catches:
                        raise LoginFailed("whatever") from error
                    raise

        with pytest.raises(LoginTrouble) as trouble:
            await done(Own(), Shop(home=answer(status)))
        answered = trouble.value.answer
        assert isinstance(answered, Response)
        assert (trouble.value.site, answered.status) == ("shop.example", status)

    async def test_no_answer(self) -> None:
        error = FetchError("no connection")
        with pytest.raises(LoginTrouble) as trouble:
            await done(Coder(), Shop(login=error))
        assert trouble.value.answer is error

    async def test_one_that_passes_is_forgotten(self) -> None:
        class Own(Coder):
            async def login(self, session: Session) -> None:
                try:
                    await session.get(f"{SITE}/news")
                except FetchError:
                    await super().login(session)

        await done(Own(), Shop(news=answer(500)))

    async def test_a_guard_is_a_block(self) -> None:
        with pytest.raises(LoginTrouble) as trouble:
            await done(Coder(), Shop(login=answer(403, "", cf_mitigated="challenge")))
        assert trouble.value.block is not None
        assert trouble.value.block.kind == "challenge"

    async def test_a_plain_403_says_that_the_password_is_wrong(self) -> None:
        class Own(Spider):
            async def login(self, session: Session) -> None:
                await session.post(f"{SITE}/api", json={})

        with pytest.raises(LoginFailed, match="HTTP 403"):
            await done(Own(), Shop(api=answer(403, '{"error": "wrong password"}')))

    @pytest.mark.parametrize("error", [OwnFault("no sockets"), StorageFailed("gone")])
    async def test_of_our_own(self, error: Exception) -> None:
        async def turn(host: str) -> float:
            raise error

        with pytest.raises(type(error)):
            await done(Coder(), Shop(), turn=turn)


class TestTurns:
    async def test_the_lease_is_the_first(self) -> None:
        asked: list[str] = []

        async def ask(host: str) -> float:
            asked.append(host)
            return 0.0

        turns = Turns(ask, ("shop.example", time.monotonic() + 10))
        before = time.monotonic()
        assert await turns("shop.example") > before + 5
        assert before <= await turns("shop.example") - SEND_SLACK_S <= time.monotonic()
        assert asked == ["shop.example"]

    async def test_it_is_for_no_other_host_and_not_for_later(self) -> None:
        asked: list[str] = []

        async def ask(host: str) -> float:
            asked.append(host)
            return 0.0

        await Turns(ask, ("shop.example", time.monotonic() + 10))("login.example")
        await Turns(ask, ("shop.example", time.monotonic() - 1))("shop.example")
        assert asked == ["login.example", "shop.example"]

    async def test_waits_as_long_as_it_is_told(self) -> None:
        answers = [0.02, 0.03, 0.0]

        async def ask(host: str) -> float:
            return answers.pop(0)

        before = time.monotonic()
        await in_time("the turn", Turns(ask)("shop.example"))
        assert time.monotonic() - before >= 0.05

    async def test_not_for_ever(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async def ask(host: str) -> float:
            return 0.01

        monkeypatch.setattr(login_requests, "MAX_WAIT_S", 0.025)
        with pytest.raises(NoTurn, match=r"shop.example gave no turn for a login in 0\.025 s"):
            await Turns(ask)("shop.example")

    async def test_a_frontier_that_is_away(self) -> None:
        answers: list[Exception | float] = [StorageBusy("away"), 0.0]

        async def ask(host: str) -> float:
            said = answers.pop(0)
            if isinstance(said, Exception):
                raise said
            return said

        asked_at = await in_time("the turn", Turns(ask)("shop.example")) - SEND_SLACK_S
        assert asked_at <= time.monotonic() <= asked_at + SEND_SLACK_S

    async def test_one_that_lapsed_is_asked_for_again(self) -> None:
        turns: list[str] = []

        class Slow(Shop):
            async def fetch(self, request: Request) -> Response:
                if len(turns) == 1:
                    raise TooLate("connecting took longer")
                return await super().fetch(request)

        async def turn(host: str) -> float:
            turns.append(host)
            return time.monotonic() + 10

        login = Login(identity="shop#alice", account=ALICE, table=BY_FORM, spider=Plain())
        await done(Plain(), Slow(), turn=turn, login=login)
        assert (len(turns), login.sent) == (4, 3)


@pytest.mark.parametrize(
    ("spider", "table", "flaw"),
    [
        (Plain, BY_FORM, None),
        (Coder, BY_CODE, None),
        (Plain, BY_CODE, "nobody can log in"),
        (Coder, SessionConfig(accounts="x"), "nothing proves a login"),
        (Coder, SessionConfig(accounts="x", logged_in="a["), "logged_in: "),
    ],
)
def test_what_a_crawl_needs(spider: type[Spider], table: SessionConfig, flaw: str | None) -> None:
    found = flaw_of(spider(), table)
    assert (found is None) == (flaw is None)
    assert (found or "").startswith(flaw or "")


def test_what_is_written_in_another_way() -> None:
    class Wrong(Spider):
        def login(self, session: Session) -> None: ...

    class Waiting(Coder):
        async def logged_in(self, page: Page) -> bool:
            return True

    class Handler(Spider):
        def login(self, page: Page) -> None: ...

    assert "not async" in (flaw_of(Wrong(), BY_CODE) or "")
    assert "logged_in is async" in (flaw_of(Waiting(), BY_CODE) or "")
    assert "nobody can log in" in (flaw_of(Handler(), BY_CODE) or "")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("no secret", "no secret"),
        ("it is s3cr&t x", "it is ***"),
        ("?a=s3cr%26t%20x&b=s3cr%26t+x", "?a=***&b=***"),
        ("flag", "flag"),
        ("a 7 it is", ""),
    ],
)
def test_secrets_are_cut_out(text: str, told: str) -> None:
    assert without_secrets(text, ["s3cr&t x", "7", ""]) == told


async def test_the_way_is_that_of_the_account() -> None:
    """The fetcher refuses what has no exit, so a login says whose it is."""
    shop = Shop()
    jar = EMPTY.after(changes(EMPTY, ["device=7"], f"{SITE}/", 1.0), 1.0)
    login = Login(identity="shop#alice", account=ALICE, table=BY_FORM, spider=Plain(), jar=jar)
    await done(Plain(), shop, login=login)
    assert all(request.task.pool == "@shop#alice" for request in shop.asked)
    assert shop.asked[0].cookies == "device=7"
    assert DIRECT not in [request.route for request in shop.asked]
    assert CANARY not in repr(login)
