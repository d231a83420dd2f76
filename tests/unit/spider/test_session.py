"""Sessions: what a browser would do about cookies, redirects and forms while somebody logs in."""

from __future__ import annotations

import asyncio

import pytest

from shoal.core.cookies import EMPTY, Jar, changes
from shoal.core.policy import MAX_REDIRECTS
from shoal.core.urls import MAX_URL_LENGTH
from shoal.errors import BadUrl, LoginFailed
from shoal.spider.session import Session
from support.session_hosts import ALICE, SITE, Host, to
from support.until import in_time

FORM = "<form method=post action=/in><input name=user><input name=csrf value=token></form>"


def session(host: Host, jar: Jar = EMPTY) -> Session:
    return Session("shop#alice", ALICE, host.send, jar)


async def test_cookies_are_kept_also_those_of_redirects() -> None:
    host = Host(login=to("/home", 302, "a=1", "b=2; path=/home"), home=(200, "hello", ()))
    visitor = session(host)
    page = await visitor.get(f"{SITE}/login")
    assert (page.url, page.text) == (f"{SITE}/home", "hello")
    assert host.cookies == ["", "b=2; a=1"]
    assert visitor.page is page
    assert len(visitor.jar.cookies) == 2


async def test_it_begins_with_the_cookies_that_are_there() -> None:
    jar = EMPTY.after(changes(EMPTY, ["device=7"], f"{SITE}/", 1.0), 1.0)
    host = Host()
    await session(host, jar).get(f"{SITE}/")
    assert host.cookies == ["device=7"]


@pytest.mark.parametrize(
    ("status", "sent"),
    [(301, ("GET", None)), (302, ("GET", None)), (303, ("GET", None))]
    + [(status, ("POST", "user=alice")) for status in (307, 308)],
)
async def test_methods_of_redirects(status: int, sent: tuple[str, str | None]) -> None:
    host = Host(**{"in": to("/home", status)})
    await session(host).post(f"{SITE}/in", form={"user": "alice"})
    assert (host.asked[1].method, host.asked[1].body) == sent


async def test_no_body_and_no_secret_header_goes_elsewhere() -> None:
    host = Host(**{"in": to("https://other.example/x", 307), "see": to("https://other.example/x")})
    with pytest.raises(LoginFailed, match=r"^redirected: a body is not sent to another site"):
        await session(host).post(f"{SITE}/in", json={"password": "canary"})
    assert len(host.asked) == 1
    await session(host).get(f"{SITE}/see", headers={"Authorization": "x", "Accept": "y"})
    assert host.asked[-1].headers == {"Accept": "y"}


async def test_redirects_have_an_end() -> None:
    host = Host(x=to("/x"))
    with pytest.raises(LoginFailed, match=f"more than {MAX_REDIRECTS} redirects, from {SITE}/x"):
        await session(host).get(f"{SITE}/x")
    assert len(host.asked) == MAX_REDIRECTS + 1


async def test_a_redirect_that_leads_to_no_page() -> None:
    with pytest.raises(LoginFailed, match="not an http"):
        await session(Host(x=to("javascript:1"))).get(f"{SITE}/x")


async def test_a_redirect_to_an_endless_address() -> None:
    host = Host(x=to(f"/login?{'x' * MAX_URL_LENGTH}"))
    with pytest.raises(LoginFailed, match="more than 8000 characters"):
        await session(host).get(f"{SITE}/x")
    assert len(host.asked) == 1


async def test_no_address() -> None:
    with pytest.raises(BadUrl):
        await session(Host()).get("login")


async def test_a_form_is_sent_as_the_page_has_it() -> None:
    host = Host(login=(200, FORM, ()))
    visitor = session(host)
    page = await visitor.get(f"{SITE}/login?next=/x")
    await visitor.submit(page, "form", {"user": visitor.user})
    assert host.lines == [f"GET {SITE}/login?next=/x", f"POST {SITE}/in"]
    assert host.asked[1].body == "user=alice&csrf=token"
    assert {task.session for task in host.asked} == {"shop#alice"}
    assert {task.depth for task in host.asked} == {0}


@pytest.mark.parametrize(
    "login",
    [
        (200, FORM.replace("/in", "http://shop.example/in"), ()),
        to("http://shop.example/form"),
    ],
    ids=["the form", "its page"],
)
async def test_no_form_leaves_encryption(login: tuple[int, str, list[tuple[str, str]]]) -> None:
    host = Host(login=login, form=(200, FORM, ()))
    visitor = session(host)
    page = await visitor.get(f"{SITE}/login")
    with pytest.raises(LoginFailed, match=r"^the form would be sent to shop.example without"):
        await visitor.submit(page, "form", {"user": visitor.user})
    assert {task.method for task in host.asked} == {"GET"}


async def test_where_the_login_began() -> None:
    host = Host(account=to("/login"), login=(200, FORM, ()))
    visitor = session(host)
    assert visitor.login_url == ""
    page = await visitor.get(f"{SITE}/account?password=canary#x")
    assert visitor.login_url == f"{SITE}/account", "a query may be a secret"
    await visitor.submit(page, "form")
    assert visitor.login_url == f"{SITE}/login", "the page that has the form"


async def test_the_front_page_is_not_where_people_log_in() -> None:
    visitor = session(Host())
    await visitor.get(f"{SITE}/")
    assert visitor.login_url == ""


async def test_one_request_at_a_time() -> None:
    host = Host()
    visitor = session(host)
    both = asyncio.gather(visitor.get(f"{SITE}/1"), visitor.get(f"{SITE}/2"))
    await in_time("both pages", both)
    assert host.most == 1


async def test_the_account() -> None:
    visitor = session(Host())
    assert (visitor.user, visitor.password) == ("alice", "canary")
    assert "canary" not in repr(visitor)
    bare = Session("shop#bob", {"name": "bob"}, Host().send)
    assert bare.user == "bob"
    with pytest.raises(LoginFailed, match="no column password"):
        _ = bare.password
