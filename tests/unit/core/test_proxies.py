"""The address of a proxy: all the ways in which people write one, and no secret in any message."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.proxies import ProxyAddress, parse_proxy
from shoal.errors import ConfigError

CANARY = "canary-4711"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("proxy.example:8080", ProxyAddress("http", "proxy.example", 8080)),
        ("  192.0.2.1:80 ", ProxyAddress("http", "192.0.2.1", 80)),
        ("[2001:db8::1]:80", ProxyAddress("http", "2001:db8::1", 80)),
        ("p.example:80:me:pw", ProxyAddress("http", "p.example", 80, "me", "pw")),
        ("p.example:80:me:p:w", ProxyAddress("http", "p.example", 80, "me", "p:w")),
        ("[2001:db8::1]:80:me:pw", ProxyAddress("http", "2001:db8::1", 80, "me", "pw")),
        ("me:pw@p.example:80", ProxyAddress("http", "p.example", 80, "me", "pw")),
        ("key@p.example:80", ProxyAddress("http", "p.example", 80, "key")),
        ("me:p@w@p.example:80", ProxyAddress("http", "p.example", 80, "me", "p@w")),
        ("me:100%25@p.example:80", ProxyAddress("http", "p.example", 80, "me", "100%25")),
        ("http://me:p%40w@P.Example:80/", ProxyAddress("http", "p.example", 80, "me", "p@w")),
        ("HTTP://p.example:80", ProxyAddress("http", "p.example", 80)),
        ("socks5://me:pw@p.example:1080", ProxyAddress("socks5", "p.example", 1080, "me", "pw")),
        ("socks5h://p.example:1080", ProxyAddress("socks5", "p.example", 1080)),
        ("socks5://[::1]:1080", ProxyAddress("socks5", "::1", 1080)),
        ("bind://192.0.2.7", ProxyAddress("bind", "192.0.2.7")),
        ("bind://[2001:db8::7]", ProxyAddress("bind", "2001:db8::7")),
    ],
)
def test_all_the_forms_that_people_have(text: str, expected: ProxyAddress) -> None:
    assert parse_proxy(text) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("https://p.example:443", "proxies by https:// are not supported"),
        ("socks4://p.example:1080", "proxies by socks4:// are not supported"),
        ("socks4a://p.example:1080", "proxies by socks4a:// are not supported"),
        ("ftp://p.example:21", "its scheme is none of http, socks5, socks5h, bind"),
        ("p.example", "its port is missing"),
        ("p.example:0", "its port is missing or no number up to 65535"),
        ("p.example:65536", "its port is missing or no number up to 65535"),
        (f"p.example:{CANARY}", "its port is missing"),
        (f"p.example:{CANARY}:80", "its port is missing"),
        (f"http://p.example:80:me:{CANARY}", "a URL has its login before the host"),
        (f"me:{CANARY}@p.example:80/x y", "not a proxy (write host:port, "),
        (f"http://me:{CANARY}@-:80", "its host is no name"),
        (f"http://me:{CANARY}%0d%0aX@p.example:80", "characters that cannot be sent"),
        (f"socks5://me:{CANARY * 30}@p.example:80", "longer than 255 bytes"),
        ("bind://p.example", "write bind://192.0.2.1"),
        (f"bind://{CANARY}@192.0.2.1", "write bind://192.0.2.1"),
        ("", "not a proxy"),
        ("2001:db8::1", "not a proxy"),
    ],
)
def test_what_is_none_is_told_in_one_line_without_a_secret(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_proxy(text)
    said = str(raised.value)
    assert words in said
    assert CANARY not in said
    assert "\n" not in said


@given(st.text() | st.from_regex(r"(\w+://)?\w*:?\w*@?[\w.:\[\]]*:\d+(:\w+)*", fullmatch=True))
def test_any_text_is_a_proxy_or_a_config_error(text: str) -> None:
    try:
        proxy = parse_proxy(text)
    except ConfigError:
        return
    again = parse_proxy(str(ProxyAddress(proxy.scheme, proxy.host, proxy.port)))
    assert (again.scheme, again.host, again.port) == (proxy.scheme, proxy.host, proxy.port)


def test_nothing_of_a_login_is_shown() -> None:
    proxy = parse_proxy(f"http://{CANARY}:{CANARY}@p.example:80")
    assert str(proxy) == repr(proxy) == f"{proxy}" == "http://***@p.example:80"
    assert CANARY not in str([proxy])
