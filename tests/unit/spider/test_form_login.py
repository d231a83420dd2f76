"""Logins by a form that shoal.toml describes."""

from __future__ import annotations

import pytest

from shoal.core.session_config import SessionConfig
from shoal.errors import LoginFailed
from shoal.spider.form_login import filled, log_in_by_form
from shoal.spider.page import Page
from shoal.spider.session import Session
from support.session_hosts import ALICE, SITE, Host, to

FORM = """<form id=search><input name=q></form><form id=login method=post action=/in>
<input type=hidden name=csrf value=token><input name=user><input name=password type=password>
<button name=go value=a>Log in</button><button id=other name=go value=b>Log in</button></form>"""


def table(**changes: object) -> SessionConfig:
    settings: dict[str, object] = {
        "accounts": "file:x",
        "login_url": f"{SITE}/login",
        "form": "#login",
        "fields": {"user": "{user}", "password": "{password}"},
    }
    return SessionConfig(**{**settings, **changes})  # type: ignore[arg-type]


def is_home(page: Page) -> bool:
    return page.url.endswith("/home")


async def logged_in(host: Host, group: SessionConfig) -> Page:
    return await log_in_by_form(Session("shop#alice", ALICE, host.send), group, is_home)


async def test_the_form_is_filled_in_and_sent() -> None:
    host = Host(login=(200, FORM, ()), **{"in": to("/home")})
    page = await logged_in(host, table())
    assert page.url == f"{SITE}/home"
    assert host.lines[1] == f"POST {SITE}/in"
    assert host.asked[1].body == "csrf=token&user=alice&password=canary&go=a"


async def test_another_button() -> None:
    host = Host(login=(200, FORM, ()))
    await logged_in(host, table(button="#other"))
    assert (host.asked[1].body or "").endswith("go=b")


async def test_who_is_logged_in_already_is_done() -> None:
    host = Host(login=to("/home"))
    assert (await logged_in(host, table())).url == f"{SITE}/home"
    assert len(host.asked) == 2


async def test_no_such_form() -> None:
    with pytest.raises(LoginFailed) as raised:
        await logged_in(Host(login=to("/gone?token=canary"), gone=(404, "gone", ())), table())
    assert str(raised.value) == "no form '#login' on https://shop.example/gone (HTTP 404)"


async def test_no_such_field_or_column() -> None:
    host = Host(login=(200, FORM, ()))
    with pytest.raises(LoginFailed, match="no field 'pass'"):
        await logged_in(host, table(fields={"pass": "{password}"}))
    with pytest.raises(LoginFailed, match=r"^the account has no column 'otp'$"):
        await logged_in(host, table(fields={"user": "{otp}"}))


def test_braces_name_columns() -> None:
    values = filled({"a": "{user}@x", "b": "{user}{n}", "c": "plain"}, {"user": "{n}", "n": "1"})
    assert values == {"a": "{n}@x", "b": "{n}1", "c": "plain"}, "what is filled in is not read"
