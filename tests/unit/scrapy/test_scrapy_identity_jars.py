"""The cookies of an account, in Scrapy's jars and back."""

from __future__ import annotations

import time
from typing import Any

import pytest
from msgspec.structs import replace
from scrapy import Request
from scrapy.http import Response
from scrapy.http.cookies import CookieJar

from shoal.core.cookies import EMPTY, Cookie, Jar, changes
from shoal.scrapy.wire.identity_jars import from_scrapys, to_scrapys

URL = "https://www.shop.example/account/orders"
NOW = time.time()
LINES = [
    "sid=abc; Path=/; HttpOnly; Secure",
    "lang=de; Domain=shop.example; Path=/",
    "sid=wide; Domain=shop.example; Path=/",
    "cart=7; Path=/account; Max-Age=3600",
    'odd="a b"; Path=/',
    "empty=; Path=/",
]


def scrapys(jar: Jar) -> CookieJar:
    made = CookieJar()
    for cookie in to_scrapys(jar):
        made.set_cookie(cookie)
    return made


def jar_of(*lines: str, url: str = URL) -> Jar:
    return EMPTY.after(changes(EMPTY, lines, url, NOW), NOW)


def sent(jar: CookieJar, url: str) -> set[str]:
    request = Request(url)
    jar.add_cookie_header(request)
    header = request.headers.get("Cookie") or b""
    return set(header.decode().split("; ")) - {""}


def answered(jar: CookieJar, url: str, *lines: str) -> None:
    jar.extract_cookies(Response(url, headers={"Set-Cookie": list(lines)}), Request(url))


@pytest.mark.parametrize(
    "url",
    [
        URL,
        "https://www.shop.example/",
        "http://www.shop.example/account/x",
        "https://shop.example/",
        "https://api.shop.example/account/x",
        "https://evilshop.example/",
    ],
)
def test_scrapy_sends_what_we_would(url: str) -> None:
    jar = jar_of(*LINES)
    expected = jar.header(url, NOW)
    assert sent(scrapys(jar), url) == set(expected.split("; ")) - {""}


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "shop", "printer.local", "shop.example"]
)
def test_hosts_of_all_kinds(host: str) -> None:
    url = f"http://{host}:8080/login"
    jar = jar_of("sid=abc; Path=/", url=url)
    made = scrapys(jar)
    assert sent(made, url) == {"sid=abc"}
    assert from_scrapys(made, jar, host, NOW) == jar
    assert from_scrapys(made, jar, "another", NOW) == jar
    fresh = CookieJar()
    answered(fresh, url, "sid=abc; Path=/")
    assert from_scrapys(fresh, EMPTY, host, NOW) == replace_times(jar)


def replace_times(jar: Jar) -> Jar:
    return Jar(tuple(replace(cookie, set_at=NOW) for cookie in jar.cookies))


def test_what_is_not_touched_stays_as_it_was() -> None:
    """Also its fractions of a second, and when it was set."""
    jar = jar_of(*LINES)
    later = from_scrapys(scrapys(jar), jar, "www.shop.example", NOW + 10)
    assert later == jar
    assert [cookie.key for cookie in later.cookies] == [cookie.key for cookie in jar.cookies]


def test_what_an_answer_makes_of_it_is_what_we_would_make() -> None:
    jar = jar_of(*LINES)
    lines = [
        "sid=new; Path=/; HttpOnly; Secure",
        "lang=; Domain=shop.example; Path=/; Max-Age=0",
        "seen=1; httponly",
    ]
    made = scrapys(jar)
    answered(made, URL, *lines)
    expected = jar.after(changes(jar, lines, URL, NOW), NOW)
    found = from_scrapys(made, jar, "www.shop.example", NOW)
    assert _facts(found) == _facts(expected)
    assert {cookie.name for cookie in found.cookies if cookie.http_only} == {"sid", "seen"}


def test_what_has_expired_is_left_out() -> None:
    jar = jar_of(*LINES)
    found = from_scrapys(scrapys(jar), jar, "www.shop.example", NOW + 7200)
    assert {cookie.name for cookie in jar.cookies} - {it.name for it in found.cookies} == {"cart"}


def test_a_cookie_without_a_value_has_an_empty_one() -> None:
    made = CookieJar()
    answered(made, URL, "flag; Path=/")
    (cookie,) = from_scrapys(made, EMPTY, "www.shop.example", NOW).cookies
    assert (cookie.name, cookie.value) == ("flag", "")


def test_a_cookie_that_no_jar_has_room_for() -> None:
    made = CookieJar()
    answered(made, URL, "huge=" + "x" * 1_000_000, "sid=1; Path=/")
    (cookie,) = from_scrapys(made, EMPTY, "www.shop.example", NOW).cookies
    assert cookie.name == "sid"


def _facts(jar: Jar) -> set[Any]:
    def facts(cookie: Cookie) -> Any:
        expires = None if cookie.expires is None else int(cookie.expires)
        return (*cookie.key, cookie.value, cookie.secure, cookie.http_only, expires)

    return {facts(cookie) for cookie in jar.cookies}
