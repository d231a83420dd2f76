"""Which answers are blocks. The pages are written after those that guards of sites really send."""

from __future__ import annotations

import pytest
from multidict import CIMultiDict

from shoal.core.blocks import HEAD_BYTES, UsualSizes, find_block

PAGE = b"<html><head><title>Lamp</title></head><body><h1>Lamp</h1>" + b"<p>Oak.</p>" * 4_000
WIDGET = b"<script src='https://www.google.com/recaptcha/api.js'></script>"
CHALLENGE = b"<title>Just a moment...</title><p>Checking your browser before you go on.</p>"
CAPTCHA = (
    b"<title>Shop</title><p>Please confirm that you are human.</p><div id='captcha-box'></div>"
)
ARTICLE = b"<h1>How a CAPTCHA works</h1><p>Are you a robot? they ask.</p>" + PAGE
USUAL = 40_000


def kind(status: int, body: bytes = PAGE, usual: int = USUAL, **headers: str) -> str | None:
    named = CIMultiDict({name.replace("_", "-"): value for name, value in headers.items()})
    block = find_block(
        status, named, body, url="https://shop.example/lamp?from=login", usual_bytes=usual
    )
    return block.kind if block else None


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (403, b"", "forbidden"),
        (403, b"<h1>403 Forbidden</h1>", "forbidden"),
        (403, CHALLENGE, "challenge"),
        (403, CAPTCHA, "captcha"),
        (429, b"slow down", "too many requests"),
        (429, WIDGET + b"unusual traffic from your network", "captcha"),
        (200, b"", "empty"),
        (200, b" \r\n\n", "empty"),
    ],
)
def test_strong_signs_stand_alone(status: int, body: bytes, expected: str) -> None:
    assert kind(status, body) == kind(status, body, usual=0) == expected


@pytest.mark.parametrize("status", [200, 202, 403, 404, 500, 503])
def test_who_says_that_it_is_a_guard_is_one_whatever_the_status(status: int) -> None:
    assert kind(status, cf_mitigated="challenge") == "challenge"
    assert kind(status, x_amzn_waf_action="captcha") == "captcha"


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("/login", "login"),
        ("/account/sign-in?next=%2Flamp", "login"),
        ("https://login.shop.example/", "login"),
        ("https://shop.example/Login.aspx#top", "login"),
        ("/errors/validateCaptcha?u=1", "captcha"),
        ("https://guard.example/challenge/7", "challenge"),
        ("/lamp/", None),
        ("https://www.shop.example/lamp?from=login", None),
        ("/blog/how-to-login-faster", None),
        ("/blocked-drains", None),
        ("", None),
        ("//", None),
    ],
)
@pytest.mark.parametrize("status", [301, 302, 307])
def test_where_a_redirect_leads(status: int, location: str, expected: str | None) -> None:
    assert kind(status, b"", Location=location) == expected


def test_who_asks_for_a_login_page_may_be_sent_to_one() -> None:
    headers = {"Location": "https://shop.example/login"}
    assert find_block(301, headers, b"", url="http://shop.example/login") is None


@pytest.mark.parametrize(
    ("status", "body", "usual", "expected"),
    [
        (200, CAPTCHA, USUAL, "captcha"),
        (200, CHALLENGE, USUAL, "challenge"),
        (200, CAPTCHA, 0, "captcha"),  # Small, and both kinds of words are in it.
        (200, CHALLENGE, 0, None),
        (200, CHALLENGE, 200, None),  # Pages are as short as this here.
        (200, CAPTCHA, 100, None),  # A page as long as all others is not looked through.
        (200, CAPTCHA, 40, "captcha"),
        (200, ARTICLE, USUAL, None),
        (200, WIDGET + PAGE, USUAL, None),
        (200, PAGE[:500], USUAL, None),  # Short, and says nothing.
        (200, PAGE, USUAL * 100, None),
        (202, CHALLENGE, 0, "challenge"),
        (503, CHALLENGE, USUAL, "challenge"),
        (503, b"<h1>Sorry, too busy</h1>", USUAL, None),
        (404, CAPTCHA, USUAL, None),
        (410, CAPTCHA, USUAL, None),
        (500, CAPTCHA, USUAL, None),
        (200, b'{"items": []}', USUAL, None),
        (204, b"", USUAL, None),
        (304, b"", USUAL, None),
    ],
)
def test_weak_signs_need_a_second(
    status: int, body: bytes, usual: int, expected: str | None
) -> None:
    assert kind(status, body, usual) == expected


def test_no_more_than_the_start_of_a_body_is_looked_at() -> None:
    assert kind(503, b" " * HEAD_BYTES + CAPTCHA) is None


def test_what_has_no_body_may_be_empty() -> None:
    assert find_block(200, {}, b"", may_be_empty=True) is None


def test_the_evidence_of_a_guess_is_told() -> None:
    block = find_block(200, {}, CAPTCHA, usual_bytes=USUAL)
    assert block is not None
    assert block.evidence == "says 'you are human' and 'captcha', 88 bytes instead of some 40,000"


def test_how_long_pages_usually_are() -> None:
    sizes = UsualSizes()
    for _ in range(UsualSizes.ENOUGH - 1):
        sizes.note("parse", 1_000)
    assert sizes.usual("parse") == 0
    sizes.note("parse", 90)
    assert (sizes.usual("parse"), sizes.usual("product")) == (1_000, 0)
    for _ in range(UsualSizes.LAST + 8):
        sizes.note("parse", 5_000)
    assert sizes.usual("parse") == 5_000
