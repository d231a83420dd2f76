"""The shop behind a login notices what it should: else the crawls of it would show nothing."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

import pytest
from aiohttp import ClientResponse, ClientSession, CookieJar, TCPConnector

from support.doorman import CANARY
from support.session_site import SessionSite, Stranger


@pytest.fixture
async def site() -> AsyncIterator[SessionSite]:
    async with SessionSite({"alice": "a", "bob": "b"}, takes_s=0.02) as site:
        yield site


@pytest.fixture
async def browser() -> AsyncIterator[ClientSession]:
    async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as browser:
        yield browser


async def log_in(
    browser: ClientSession, site: SessionSite, user: str = "alice", password: str = "a"
) -> ClientResponse:
    page = await (await browser.get(f"{site.url}login")).text()
    (token,) = re.findall(r"name=csrf value=(\d+)", page)
    fields = {"csrf": token, "user": user, "password": password}
    return await browser.post(f"{site.url}login", data=fields)


async def test_an_honest_visitor(site: SessionSite, browser: ClientSession) -> None:
    answer = await log_in(browser, site)
    assert (answer.url.path, answer.status) == ("/home", 200)
    page = await (await browser.get(f"{site.url}product/3")).text()
    assert "<b class=account>alice</b>" in page
    assert "a class=logout" in page
    adult = await browser.get(f"{site.url}adult/3")
    assert (adult.status, len(adult.history)) == (200, 1)
    door = site.door
    assert (door.logins, door.refused) == (["alice"], [])
    assert (door.overlaps, door.violations, door.needless, door.faults) == ([], [], [], [])
    assert [(seen.method, seen.path, seen.account) for seen in door.log[:3]] == [
        *(("GET", "/login", ""), ("POST", "/login", "alice"), ("GET", "/home", "alice"))
    ]
    assert f"sid={CANARY}-alice-1" in door.log[2].cookie


@pytest.mark.parametrize("stranger", Stranger)
async def test_a_stranger(site: SessionSite, browser: ClientSession, stranger: Stranger) -> None:
    site.stranger = stranger
    answer = await browser.get(f"{site.url}catalog")
    page = await answer.text()
    assert "logout" not in page
    assert answer.status == (401 if stranger is Stranger.UNAUTHORISED else 200)
    assert bool(answer.history) == (stranger is Stranger.REDIRECT)


async def test_two_requests_at_once(site: SessionSite, browser: ClientSession) -> None:
    await log_in(browser, site)
    await asyncio.gather(*(browser.get(f"{site.url}product/{number}") for number in (1, 2)))
    assert site.door.overlaps == ["alice"]
    assert site.door.most["alice"] == 2


@pytest.mark.parametrize("other", ["address", "browser"])
async def test_another_address_or_browser(
    site: SessionSite, browser: ClientSession, other: str
) -> None:
    await log_in(browser, site)
    jar = browser.cookie_jar
    local = ("127.0.0.77", 0) if other == "address" else None
    headers = {"User-Agent": "other"} if other == "browser" else None
    connector = TCPConnector(local_addr=local)
    async with ClientSession(cookie_jar=jar, connector=connector, headers=headers) as thief:
        assert (await thief.get(f"{site.url}catalog")).url.path == "/login"
    assert len(site.door.violations) == 1
    assert (await browser.get(f"{site.url}catalog")).url.path == "/login", "the session is over"


async def test_logins_that_are_wrong_or_needless(site: SessionSite, browser: ClientSession) -> None:
    page = await (await log_in(browser, site, password="b")).text()
    assert "Wrong password" in page
    assert site.door.refused == ["alice"]
    await browser.post(f"{site.url}login", data={"user": "alice", "password": "a"})
    assert len(site.door.faults) == 1
    assert site.door.logins == []
    for _ in range(2):
        account = {"user": "bob", "password": "b"}
        assert (await browser.post(f"{site.url}api/login", json=account)).status == 200
    assert site.door.needless == ["bob"]


async def test_a_session_ends(site: SessionSite, browser: ClientSession) -> None:
    site.door.ends_after = 3
    await log_in(browser, site)
    paths = [(await browser.get(f"{site.url}catalog")).url.path for _ in range(3)]
    assert paths == ["/catalog", "/catalog", "/login"]
    await log_in(browser, site)
    assert site.door.needless == []
