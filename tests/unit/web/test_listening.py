"""Addresses to listen on, and names by which the server may be asked for."""

from __future__ import annotations

import pytest

from shoal.errors import ConfigError
from shoal.web.listening import HostNames, Listen, listen_of, prefix_of


@pytest.mark.parametrize(
    ("text", "listen", "is_loopback"),
    [
        ("127.0.0.1:7350", Listen("127.0.0.1", 7350), True),
        ("localhost:0", Listen("localhost", 0), True),
        ("[::1]:80", Listen("::1", 80), True),
        ("0.0.0.0:7350", Listen("0.0.0.0", 7350), False),
        ("[::]:7350", Listen("::", 7350), False),
        ("crawls.example:1", Listen("crawls.example", 1), False),
    ],
)
def test_addresses(text: str, listen: Listen, is_loopback: bool) -> None:
    assert listen_of(text) == listen
    assert listen.is_loopback == is_loopback


@pytest.mark.parametrize(
    "text", ["", "7350", ":7350", "host:", "host:http", "host:70000", "[::1:80", "::1:80"]
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ConfigError, match="write HOST:PORT"):
        listen_of(text)


def test_prefixes() -> None:
    assert prefix_of("") == prefix_of("/") == ""
    assert prefix_of("/crawls/") == "/crawls"
    for text in ("crawls", "/a b", '/"', "//"):
        if text != "//":
            with pytest.raises(ConfigError):
                prefix_of(text)


def test_a_name_that_points_here_is_not_our_name() -> None:
    names = HostNames(Listen("127.0.0.1", 7350), ["Crawls.example"])

    for ours in ("127.0.0.1:7350", "localhost:7350", "localhost", "[::1]:80", "10.0.0.7:7350"):
        assert ours in names
    assert "crawls.example:443" in names
    for other in ("evil.example", "evil.example:7350", "localhost.evil.example", "", None):
        assert other not in names
