"""Reading Set-Cookie: what servers send, odd dates and all."""

from __future__ import annotations

from email.utils import formatdate
from http import cookiejar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.set_cookie import FOREVER_S, LONG_AGO, date, read

NOW = 1_800_000_000.0
SUNDAY = 784111777.0  # Sunday, 6 November 1994, 08:49:37


@pytest.mark.parametrize(
    "text",
    [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "Sun, 6-Nov-1994 8:49:37",
        "06 nov 1994 08:49:37",
        "1994 November 06 08:49:37.123",
        "08:49:37 94 Nov 06",
        "Sun, 06 Nov 1994 08:49:37 +0200",  # There is no zone but GMT.
        "06,Nov,1994;08:49:37",
    ],
)
def test_dates_in_many_forms(text: str) -> None:
    if text == "08:49:37 94 Nov 06":  # The first number is the day.
        assert date(text) is None
    else:
        assert date(text) == SUNDAY


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "soon",
        "06 Nov 1994",
        "31 Feb 2020 00:00:00",
        "06 Nov 1500 08:49:37",
        "6 N 94 1:2:3",
    ],
)
def test_what_is_no_date(text: str) -> None:
    assert date(text) is None


@given(st.integers(0, 2_000_000_000))
def test_agrees_with_the_standard_library_on_usual_dates(moment: int) -> None:
    text = formatdate(moment, usegmt=True)
    http2time = cookiejar.http2time  # type: ignore[attr-defined]
    assert date(text) == moment == http2time(text)


@given(st.text())
def test_dates_of_any_text(text: str) -> None:
    date(text)


@given(st.text(st.characters(codec=None)))
def test_lines_of_any_text(line: str) -> None:
    cookie = read(line, NOW)
    if cookie is not None:
        assert cookie.name
        f"{cookie.name}={cookie.value}".encode()


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("a=1", "a", "1"),
        (" a = 1 ;x", "a", "1"),
        ("a=", "a", ""),
        ('a="x y"', "a", '"x y"'),
        ("a=b=c", "a", "b=c"),
        ("a=1, b=2", "a", "1, b=2"),
        ("ä=ö", "ä", "ö"),
    ],
)
def test_name_and_value(line: str, name: str, value: str) -> None:
    cookie = read(line, NOW)
    assert cookie is not None
    assert (cookie.name, cookie.value) == (name, value)


@pytest.mark.parametrize(
    "line",
    ["", "a", "=1", ";a=1", "a=\r\nb", "a=\x00", "a=1; path=/\x07", "a=\udcff", "a=" + "x" * 4096],
)
def test_what_is_no_cookie(line: str) -> None:
    assert read(line, NOW) is None


def test_the_longest_that_is_kept() -> None:
    assert read("a=" + "x" * 4095, NOW) is not None


@pytest.mark.parametrize(
    ("attributes", "expires"),
    [
        ("", None),
        ("Max-Age=60", NOW + 60),
        ("max-age = 60", NOW + 60),
        ("Max-Age=0", LONG_AGO),
        ("Max-Age=-5", LONG_AGO),
        ("Max-Age=1e3", None),
        ("Max-Age=+5", None),
        ("Max-Age=" + "9" * 1000, NOW + FOREVER_S),
        ("Max-Age=" + "9" * 1025, None),
        ("Max-Age=60; Expires=Sun, 06 Nov 1994 08:49:37 GMT", NOW + 60),
        ("Expires=Sun, 06 Nov 1994 08:49:37 GMT; Max-Age=60", NOW + 60),
        ("Expires=Sun, 06 Nov 1994 08:49:37 GMT", SUNDAY),
        ("Expires=whenever", None),
    ],
)
def test_when_it_expires(attributes: str, expires: float | None) -> None:
    cookie = read(f"a=1; {attributes}", NOW)
    assert cookie is not None
    assert cookie.expires == expires


def test_the_other_attributes() -> None:
    cookie = read("a=1; DOMAIN=.Shop.Example; path=/x; Secure; HttpOnly; SameSite=Strict; b", NOW)
    assert cookie is not None
    assert (cookie.domain, cookie.path) == ("shop.example", "/x")
    assert cookie.secure
    assert cookie.http_only


def test_of_two_attributes_the_last_counts() -> None:
    cookie = read("a=1; path=/x; path=/y; path=z", NOW)
    assert cookie is not None
    assert cookie.path == ""


def test_its_value_is_not_shown() -> None:
    assert "canary" not in repr(read("a=canary", NOW))
