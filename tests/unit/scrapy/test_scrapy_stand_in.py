"""A spider of Scrapy's that logs accounts in, as one of ours."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy import Spider
from scrapy.http import Response

from shoal.core.session_config import SessionConfig
from shoal.errors import ConfigError
from shoal.scrapy.wire.callbacks import is_callback
from shoal.scrapy.worker.stand_in import stand_in
from shoal.spider.session import Session
from shoal.spider.spider import login_of
from shoal.worker.visits.logins import flaw_of
from shoal.worker.visits.proofs import proof_of

TABLE = SessionConfig(accounts="file:accounts.csv")


class Members(Spider):
    name = "members"
    login_url = "https://shop.example/login"
    logged_in = "a.logout"

    async def login(self, session: Session) -> None:
        self.asked = session


class Callbacks(Spider):
    """As many are: nothing of it is meant for us."""

    name = "callbacks"
    logged_in = False

    def login(self, response: Response) -> None: ...


class Checking(Members):
    def logged_in(self, page: Any) -> bool:  # type: ignore[override]
        return bool(page == self.name)


async def test_it_logs_in_as_the_spider_does() -> None:
    spider = Members()
    own = stand_in(spider)
    login, session = login_of(own), Session("shop#alice", {}, None)  # type: ignore[arg-type]
    assert login is not None
    await login(session)
    assert spider.asked is session
    assert (own.login_url, own.logged_in) == (spider.login_url, "a.logout")
    assert flaw_of(own, TABLE) is None


def test_its_proof_is_asked_with_the_spider_that_runs() -> None:
    proof: Any = proof_of(stand_in(Checking()), TABLE)
    assert proof("members")
    assert not proof("others")


def test_a_callback_called_login_stays_one() -> None:
    assert login_of(stand_in(Callbacks())) is None
    assert is_callback(Callbacks, "login")
    assert "nobody can log in" in str(flaw_of(stand_in(Callbacks()), TABLE))


def test_no_task_can_name_what_logs_in() -> None:
    assert not is_callback(Members, "login")
    assert not is_callback(Checking, "login")


def test_a_proof_that_is_no_css_is_said() -> None:
    odd = Members()
    odd.logged_in = "a["
    with pytest.raises(ConfigError, match="logged_in"):
        stand_in(odd)
