"""Requests as a proxy reads them, and which answers are certainly its own."""

from __future__ import annotations

import pytest
from multidict import CIMultiDict

from shoal.core.exits import Blame
from shoal.core.proxies import ProxyAddress
from shoal.fetch.http.tunnels.absolute import Absolute, answer_of_proxy, is_kept
from shoal.fetch.http.ways import Origin

PROXY = ProxyAddress("http", "proxy.example", 3128)
KNOWN = ProxyAddress("http", "proxy.example", 3128, "Ärger", "p:w")


@pytest.mark.parametrize(
    ("origin", "start"),
    [
        (Origin(False, "shop.example", 80), b"http://shop.example"),
        (Origin(False, "shop.example", 8080), b"http://shop.example:8080"),
        (Origin(False, "2001:db8::1", 80), b"http://[2001:db8::1]"),
        (Origin(False, "2001:db8::1", 81), b"http://[2001:db8::1]:81"),
    ],
)
def test_the_whole_url_is_in_the_first_line(origin: Origin, start: bytes) -> None:
    request = b"POST /a?b HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\n"
    assert Absolute.of(origin, PROXY).rewritten(request) == (
        b"POST " + start + b"/a?b HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\n"
    )


def test_the_login_comes_after_it() -> None:
    request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    assert Absolute.of(Origin(False, "x", 80), KNOWN).rewritten(request) == (
        b"GET http://x/ HTTP/1.1\r\nProxy-Authorization: Basic w4RyZ2VyOnA6dw==\r\nHost: x\r\n\r\n"
    )


OWN = {"Server": "tinyproxy/1.11.1"}


@pytest.mark.parametrize(
    ("status", "headers", "blame"),
    [
        (407, {}, Blame.EXIT),
        (401, OWN, Blame.EXIT),
        (403, OWN, Blame.PAIR),
        (500, OWN, Blame.PAIR),
        (200, OWN, None),
        (500, OWN | {"Via": "1.1 x (tinyproxy/1.11.1)"}, None),
        (502, {"Server": "squid"}, None),
        (401, {}, None),
    ],
)
def test_whose_answer_it_is(status: int, headers: dict[str, str], blame: Blame | None) -> None:
    fault = answer_of_proxy(status, CIMultiDict(headers))
    assert (fault and fault.blame) == blame


@pytest.mark.parametrize(
    ("headers", "kept"),
    [
        ({}, False),
        ({"Connection": "close"}, False),
        ({"Connection": "Keep-Alive"}, True),
        ({"proxy-connection": "keep-alive"}, True),
        ({"Proxy-Connection": "close", "Connection": "keep-alive"}, False),
    ],
)
def test_a_proxy_says_if_it_keeps_a_connection(headers: dict[str, str], kept: bool) -> None:
    assert is_kept(CIMultiDict(headers)) == kept
